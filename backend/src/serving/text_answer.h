// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "config/model_config.h"
#include "serving/front.h"
#include "serving/judging.h"
#include "serving/target_text.h"
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

  // Joins the translations of some rows.
  bool Prepare(const std::vector<RowResult>& rows) override;
  void Encode(const std::vector<RowResult>& rows, Response* response) const override;

 private:
  bool ShowsRanks() const;
  void Keep(Translation translation, size_t rank);

  const ModelConfig& config_;
  const Tokenizer& tokenizer_;
  const AnswerContent content_;
  const std::vector<TextPlan> plans_;
  const size_t targets_;
  size_t ranks_ = 0;                   // hypotheses that are joined; 0: not known yet
  std::optional<TargetText> joining_;  // the next one, half joined
  std::vector<Translation> joined_;    // of each text, language and rank
};

}  // namespace ct2triton
