// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/model_config.h"
#include "serving/front.h"
#include "serving/judging.h"
#include "serving/target_text.h"
#include "serving/text_plan.h"
#include "text/tokenizer.h"

namespace ct2triton {

// Requested content of an answer.
struct AnswerContent {
  std::vector<std::string> outputs;
  bool named = false;       // the client named these outputs; false: they are all outputs
  bool scores = false;      // scores are computed
  bool alignments = false;  // alignments were requested
  Judging judging = {};
};

// The requested outputs of one request of texts, with one element per text and target language.
class TextAnswer : public AnswerEncoder {
 public:
  // `config` and `tokenizer` outlive it. `targets`: of each text.
  TextAnswer(const ModelConfig& config, const Tokenizer& tokenizer, AnswerContent content,
             std::vector<TextPlan> plans, size_t targets);

  // Joins the translations of some rows.
  bool Prepare(const std::vector<RowResult>& rows) override;
  void Encode(const std::vector<RowResult>& rows, Response* response) const override;
  Verdict Judge(size_t row, const RowResult& result) const override;
  void Know(std::vector<Verdict> verdicts) override { known_ = std::move(verdicts); }

 private:
  struct RowPlace {
    const TextPlan* plan = nullptr;
    const PlannedSentence* sentence = nullptr;
  };

  bool ShowsRanks() const;
  void Keep(Translation translation, size_t rank);

  const ModelConfig& config_;
  const Tokenizer& tokenizer_;
  const AnswerContent content_;
  const std::vector<TextPlan> plans_;
  const size_t targets_;
  size_t ranks_ = 0;                   // hypotheses to join; 0: not known yet
  std::optional<TargetText> joining_;  // the translation being joined
  std::vector<Translation> joined_;    // of each text, language and rank
  std::vector<RowPlace> places_;       // of each row of a request that is judged
  std::vector<Verdict> known_;         // on all rows, or empty
};

}  // namespace ct2triton
