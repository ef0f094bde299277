// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/model_config.h"
#include "serving/front.h"
#include "serving/text_plan.h"
#include "text/tokenizer.h"

namespace ct2triton {

// The wanted outputs of one request of texts, with one element for each text and target language.
class TextAnswer : public AnswerEncoder {
 public:
  // `config` and `tokenizer` outlive it. `targets`: of each text.
  TextAnswer(const ModelConfig& config, const Tokenizer& tokenizer, std::vector<std::string> wanted,
             std::vector<TextPlan> plans, size_t targets);

  void Encode(const std::vector<RowResult>& rows, Response* response) const override;

 private:
  const ModelConfig& config_;
  const Tokenizer& tokenizer_;
  const std::vector<std::string> wanted_;
  const std::vector<TextPlan> plans_;
  const size_t targets_;
};

}  // namespace ct2triton
