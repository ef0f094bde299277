// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quality/gaps.h"
#include "quality/verdict.h"
#include "rows/row.h"
#include "serving/judging.h"
#include "serving/text_plan.h"
#include "text/tokenizer.h"

namespace ct2triton {

// The answer to one text in one language, or a part of it.
struct Translation {
  size_t target_index = 0;
  std::string target;  // language code; empty if the model names no languages
  std::string text;
  std::string finish;  // worst reason of its sentences
  double score = 0;    // mean of the sentences' scores, weighted by their tokens
  size_t input_tokens = 0;
  size_t output_tokens = 0;
  std::vector<Span> ranges = {};              // of the sentences, in `text`
  std::vector<AlignedSpans> alignments = {};  // if its rows have them
  std::optional<Verdict> verdict = {};        // if requested
};

// The translation of a sentence into one of the targets, from its row's answer.
struct SentenceText {
  SentenceText(const TextPlan& plan, const PlannedSentence& sentence, size_t target,
               const Tokenizer& tokenizer, const Hypothesis& one);

  std::string text;
  Alignment alignment;  // of the sentence and this text; empty if the row has none
};

// The verdict on it. `one`: the hypothesis that it is made from.
Verdict JudgeSentence(const TextPlan& plan, const PlannedSentence& sentence, size_t target,
                      const SentenceText& translation, const Hypothesis& one,
                      const Judging& judging);

// Joins one translation from the answers of its rows, added in order.
class TargetText {
 public:
  // `plan` and `tokenizer` outlive it. `rank`: of the hypotheses to join, 0 for the best; the last
  // one if a row has fewer.
  TargetText(const TextPlan& plan, size_t target, const Tokenizer& tokenizer,
             const Judging& judging = {}, size_t rank = 0);

  // The row to add next; none once the translation is complete.
  std::optional<size_t> next_row() const;
  // `known`: the verdict on it; null: judges it.
  void Add(const RowResult& result, const Verdict* known = nullptr);
  // The text before the answer of the next row.
  const Translation& so_far() const { return done_; }
  // The complete translation. Do not use the object afterwards.
  Translation Take() { return std::move(done_); }
  // How the answer of the next row will begin, if it begins with these ids.
  std::string Settled(const std::vector<int>& ids) const;

 private:
  const PlannedSentence& sentence() const { return plan_.sentences[at_]; }
  // Adds the alignments of the sentence, whose translation begins at byte `begin`.
  void Align(const Alignment& alignment, size_t begin);
  // Joins the verdict on a sentence.
  void JoinVerdict(const Verdict& verdict);
  // Judges loops across sentences too.
  void JudgeWhole();
  // Copies text up to the next sentence with rows, or to the end.
  void AddUntranslated();

  const TextPlan& plan_;
  const size_t target_;
  const size_t rank_;
  const Tokenizer& tokenizer_;
  const Judging judging_;
  const size_t prefix_length_;
  size_t at_ = 0;   // sentence of the next row
  size_t end_ = 0;  // end of the previous sentence in the text
  Translation done_;
  double weighted_score_ = 0;
  size_t judged_ = 0;  // number of judged sentences
};

}  // namespace ct2triton
