// SPDX-License-Identifier: Apache-2.0
#include "serving/row_retries.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "config/validate.h"
#include "error.h"
#include "serving/front.h"

namespace ct2triton {
namespace {

constexpr size_t kRowWork = 64;  // least work of a verdict, see kSliceWork

// If no four tokens occur twice, the verdict flags no loop. Four beams cost twice as much as two
// and find a better answer 15 % more often (benchmarks/quality/). A repetition penalty is left out
// on purpose: it also lowers tokens that a correct translation repeats, such as the digits of a
// number, and makes the score incomparable, so that `unsure` could not be computed. Stricter
// options of the request's own search stay.
DecodingOptions SecondSearch(const DecodingOptions& first, const EngineOptions& engine) {
  constexpr int64_t kBeams = 2;
  constexpr int64_t kNgram = 4;
  DecodingOptions second = first;
  second.beam_size = std::min(kBeams, engine.max_beam_size);
  const int64_t own = first.no_repeat_ngram_size;
  second.no_repeat_ngram_size = own > 0 ? std::min(own, kNgram) : kNgram;
  second.draft_bias = 0;  // its draft may be close to the doubtful answer
  return second;
}

}  // namespace

std::unique_ptr<RowRetries> RowRetries::For(const DecodingOptions& options,
                                            const EngineOptions& engine, const LoadedModel& model,
                                            const Judging& judging) {
  if (options.on_doubt != "retry" || !SearchesGreedily(options)) return nullptr;
  return std::unique_ptr<RowRetries>(new RowRetries(SecondSearch(options, engine), model, judging));
}

size_t RowRetries::Add(const CheckedRow& row) {
  sources_.push_back({row.source, row.prefix, row.empty, row.cut});
  return sizeof(Source) + (row.source.size() + row.prefix.size()) * sizeof(Ids::value_type);
}

bool RowRetries::Judge(const AnswerEncoder& encoder, const std::vector<RowResult>& answers) {
  verdicts_.reserve(sources_.size());
  for (size_t work = 0; verdicts_.size() < sources_.size();) {
    if (work >= kSliceWork) return false;
    const size_t row = verdicts_.size();
    verdicts_.push_back(encoder.Judge(row, answers[row]));
    if (!sources_[row].empty) judging_.retries->Earn();
    if (verdicts_.back().raised() > 0) Retry(row);
    work += kRowWork + sources_[row].ids.size() + answers[row].hypotheses.front().ids.size();
  }
  return true;
}

// A row that the second search refuses, for example because of its limits, keeps its first answer.
void RowRetries::Retry(size_t row) {
  const Source& source = sources_[row];
  if (source.empty) return;
  std::vector<CheckedRow> checked;
  try {
    checked = model_.Check({{source.ids, source.prefix}}, &options_);
  } catch (const Error&) {
    return;
  }
  if (!judging_.retries->Take()) return;
  rows_.push_back(std::move(checked.front()));
  rows_.back().cut = source.cut;
  places_.push_back(row);
}

std::vector<CheckedRow> RowRetries::TakeRows() {
  judging_.metrics->CountRetried(rows_.size());
  return std::move(rows_);
}

void RowRetries::KeepBetter(AnswerEncoder* encoder, std::vector<RowResult>* answers) {
  size_t better = 0;
  for (size_t i = 0; i < places_.size(); ++i) {
    RowResult& second = (*answers)[sources_.size() + i];
    if (second.hypotheses.empty()) continue;
    const size_t place = places_[i];
    Verdict verdict = encoder->Judge(place, second);
    if (!verdict.BetterThan(verdicts_[place])) continue;
    verdicts_[place] = std::move(verdict);
    (*answers)[place] = std::move(second);
    ++better;
  }
  judging_.metrics->CountRetriedBetter(better);
  encoder->Know(std::move(verdicts_));
}

}  // namespace ct2triton
