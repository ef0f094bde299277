// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quality/verdict.h"
#include "rows/row.h"
#include "serving/judging.h"
#include "serving/text_plan.h"
#include "text/tokenizer.h"

namespace ct2triton {

// What a token of an answer was translated from, both in bytes.
struct AlignedSpans {
  Span source;
  Span target;
};

// The answer to one text in one language, or a part of it.
struct Translation {
  size_t target_index = 0;
  std::string target;  // its code; empty where the model names no languages
  std::string text;
  std::string finish;  // the worst of its sentences
  double score = 0;    // the mean of the sentences' scores, each counted by its tokens
  size_t input_tokens = 0;
  size_t output_tokens = 0;
  std::vector<Span> ranges = {};              // of the sentences, in `text`
  std::vector<AlignedSpans> alignments = {};  // where its rows have them
  std::optional<Verdict> verdict = {};        // where somebody asks
};

// The verdict on the translation of a sentence into one of the targets. `one`: where it comes from.
Verdict JudgeSentence(const TextPlan& plan, const PlannedSentence& sentence, size_t target,
                      std::string_view translation, const Hypothesis& one, const Judging& judging);

// Puts one translation together, as far as the answers of its rows are there, in their order.
class TargetText {
 public:
  // `plan` and `tokenizer` outlive it. `rank`: of the hypotheses to put together, from the best, 0;
  // the last one where a row has fewer.
  TargetText(const TextPlan& plan, size_t target, const Tokenizer& tokenizer,
             const Judging& judging = {}, size_t rank = 0);

  // The row that is to be added next; nothing once the translation is whole.
  std::optional<size_t> next_row() const;
  // `known`: the verdict on it; null: it is judged here.
  void Add(const RowResult& result, const Verdict* known = nullptr);
  // So far: up to where the answer of the next row begins.
  const Translation& so_far() const { return done_; }
  // The whole translation. The object cannot be used afterwards.
  Translation Take() { return std::move(done_); }
  // How the answer of the next row will begin, if it begins with these ids.
  std::string Settled(const std::vector<int>& ids) const;

 private:
  const PlannedSentence& sentence() const { return plan_.sentences[at_]; }
  // `places`: of the tokens, in the answer of the row that begins at byte `begin`.
  void Align(const Ids& positions, const std::vector<Span>& places, size_t begin);
  // Joins the verdict on a sentence.
  void JoinVerdict(const Verdict& verdict);
  // With loops across the sentences.
  void JudgeWhole();
  // To the next sentence that has rows, or to the end.
  void AddUntranslated();

  const TextPlan& plan_;
  const size_t target_;
  const size_t rank_;
  const Tokenizer& tokenizer_;
  const Judging judging_;
  const size_t prefix_length_;
  size_t at_ = 0;   // the sentence of the next row
  size_t end_ = 0;  // of the sentence before, in the text
  Translation done_;
  double weighted_score_ = 0;
  size_t judged_ = 0;  // sentences
};

}  // namespace ct2triton
