// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/model_config.h"
#include "serving/front.h"
#include "serving/judging.h"
#include "serving/text_plan.h"
#include "text/tokenizer.h"

namespace ct2triton {

// What a request wants of its answer.
struct AnswerContent {
  std::vector<std::string> outputs;
  bool named = false;   // its client has named these outputs; else they are all that there are
  bool scores = false;  // are computed
  Judging judging = {};
};

// The wanted outputs of one request of texts, with one element for each text and target language.
class TextAnswer : public AnswerEncoder {
 public:
  // `config` and `tokenizer` outlive it. `targets`: of each text.
  TextAnswer(const ModelConfig& config, const Tokenizer& tokenizer, AnswerContent content,
             std::vector<TextPlan> plans, size_t targets);

  void Encode(const std::vector<RowResult>& rows, Response* response) const override;

 private:
  const ModelConfig& config_;
  const Tokenizer& tokenizer_;
  const AnswerContent content_;
  const std::vector<TextPlan> plans_;
  const size_t targets_;
};

}  // namespace ct2triton
