// SPDX-License-Identifier: Apache-2.0
#include "serving/target_text.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "quality/loops.h"
#include "text/segmenter.h"

namespace ct2triton {
namespace {

// Finish reason of a sentence that was split because it was too long; the engine does not have it.
constexpr char kSplit[] = "split";

size_t BadnessOf(const std::string& finish) {
  static const char* const kWorstLast[] = {"empty", "stop", kSplit, "length", "cut"};
  return static_cast<size_t>(std::find(std::begin(kWorstLast), std::end(kWorstLast), finish) -
                             std::begin(kWorstLast));
}

void AddFinish(const std::string& finish, Translation* translation) {
  if (BadnessOf(finish) > BadnessOf(translation->finish)) translation->finish = finish;
}

std::string_view SourceOf(const TextPlan& plan, const PlannedSentence& sentence) {
  const Span& span = sentence.span;
  return std::string_view(plan.text).substr(span.begin, span.end - span.begin);
}

}  // namespace

SentenceText::SentenceText(const TextPlan& plan, const PlannedSentence& sentence, size_t target,
                           const Tokenizer& tokenizer, const Hypothesis& one) {
  const std::vector<int> ids(one.ids.begin(), one.ids.end());
  if (one.alignments.empty()) {
    text = tokenizer.Text(ids.data(), ids.size());
    return;
  }
  std::vector<Span> places;
  text = tokenizer.Text(ids.data(), ids.size(), &places);
  for (Span& place : places) place = Trimmed(text, place);
  alignment = {tokenizer.SourcePlaces(SourceOf(plan, sentence), plan.source, plan.targets[target],
                                      sentence.input_tokens[target]),
               places, one.alignments};
}

Verdict JudgeSentence(const TextPlan& plan, const PlannedSentence& sentence, size_t target,
                      const SentenceText& translation, const Hypothesis& one,
                      const Judging& judging) {
  return judging.judge->Of({SourceOf(plan, sentence), translation.text, plan.targets[target],
                            judging.ScoreOf(one), plan.source, &translation.alignment});
}

TargetText::TargetText(const TextPlan& plan, size_t target, const Tokenizer& tokenizer,
                       const Judging& judging, size_t rank)
    : plan_(plan),
      target_(target),
      rank_(rank),
      tokenizer_(tokenizer),
      judging_(judging),
      prefix_length_(tokenizer.PrefixLength(plan.targets[target])) {
  done_.target_index = target;
  done_.target = plan.targets[target];
  done_.finish = "empty";
  if (judging.judge != nullptr) done_.verdict = Verdict::Clear();
  AddUntranslated();
}

std::optional<size_t> TargetText::next_row() const {
  if (at_ == plan_.sentences.size()) return std::nullopt;
  return sentence().first_row + target_;
}

void TargetText::AddUntranslated() {
  for (; at_ < plan_.sentences.size(); ++at_) {
    const std::string gap = plan_.text.substr(end_, sentence().span.begin - end_);
    done_.text += at_ == 0 ? gap : GapInTarget(gap, plan_.targets[target_]);
    end_ = sentence().span.end;
    if (sentence().sent) return;
    const size_t begin = done_.text.size();
    done_.text += plan_.text.substr(sentence().span.begin, end_ - sentence().span.begin);
    done_.ranges.push_back({begin, done_.text.size()});
  }
  done_.text += plan_.text.substr(end_);
}

void TargetText::Add(const RowResult& result, const Verdict* known) {
  const auto& all = result.hypotheses;
  const Hypothesis& one = all[std::min(rank_, all.size() - 1)];
  const SentenceText given(plan_, sentence(), target_, tokenizer_, one);
  const size_t tokens = one.ids.size() - std::min(one.ids.size(), prefix_length_);
  const size_t begin = done_.text.size();
  done_.text += given.text;
  Align(given.alignment, begin);
  if (judging_.judge != nullptr) {
    JoinVerdict(known ? *known : JudgeSentence(plan_, sentence(), target_, given, one, judging_));
  }
  done_.ranges.push_back({begin, done_.text.size()});
  done_.input_tokens += sentence().input_tokens[target_];
  done_.output_tokens += tokens;
  weighted_score_ += static_cast<double>(one.score) * static_cast<double>(tokens);
  if (done_.output_tokens > 0) {
    done_.score = weighted_score_ / static_cast<double>(done_.output_tokens);
  }
  AddFinish(FinishReasonName(one.finish), &done_);
  if (sentence().split) AddFinish(kSplit, &done_);
  ++at_;
  AddUntranslated();
  if (judged_ > 1 && !next_row()) JudgeWhole();
}

void TargetText::JoinVerdict(const Verdict& verdict) {
  if (++judged_ == 1) {
    done_.verdict = verdict;
  } else {
    done_.verdict->Join(verdict);
  }
}

void TargetText::JudgeWhole() {
  Verdict verdict;
  verdict.Set(Flag::kRepeats, LoopDoubt(plan_.text, done_.text));
  done_.verdict->Join(verdict);
}

void TargetText::Align(const Alignment& alignment, size_t begin) {
  const size_t first = sentence().span.begin;
  for (const auto& [source, target] : alignment.spans) {
    done_.alignments.push_back(
        {{first + source.begin, first + source.end}, {begin + target.begin, begin + target.end}});
  }
}

std::string TargetText::Settled(const std::vector<int>& ids) const {
  return tokenizer_.SettledText(ids.data(), ids.size());
}

}  // namespace ct2triton
