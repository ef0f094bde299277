// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "config/decoding_options.h"
#include "config/engine_options.h"
#include "engine/loaded_model.h"
#include "quality/verdict.h"
#include "rows/checked_row.h"
#include "rows/row.h"
#include "serving/judging.h"

namespace ct2triton {

class AnswerEncoder;

// The rows of one request that are decoded again because their answers are flagged (on_doubt
// retry). Used by one thread at a time.
class RowRetries {
 public:
  // Null unless flagged rows of a request with these options are decoded again: the search has to
  // be greedy. `judging` is the request's; `model` outlives it.
  static std::unique_ptr<RowRetries> For(const DecodingOptions& options,
                                         const EngineOptions& engine, const LoadedModel& model,
                                         const Judging& judging);

  // Remembers the next row of the request. Returns about the bytes that it takes.
  size_t Add(const CheckedRow& row);
  // Judges a slice of the answers, which come in the order of the rows; false while there are more.
  bool Judge(const AnswerEncoder& encoder, const std::vector<RowResult>& answers);
  // The flagged rows, with the options of the second search; once all are judged.
  std::vector<CheckedRow> TakeRows();
  // `answers` ends with those of the rows that TakeRows gave; one without hypotheses has failed.
  // Takes these off, puts each into the place of the first answer if its verdict is better, and
  // tells the encoder all verdicts.
  void KeepBetter(AnswerEncoder* encoder, std::vector<RowResult>* answers);

 private:
  struct Source {
    Ids ids;
    Ids prefix;
    bool empty = false;
    bool cut = false;
  };

  RowRetries(const DecodingOptions& options, const LoadedModel& model, const Judging& judging)
      : options_(options), model_(model), judging_(judging) {}
  void Retry(size_t row);

  const DecodingOptions options_;  // of the second search
  const LoadedModel& model_;
  const Judging judging_;
  std::vector<Source> sources_;
  std::vector<Verdict> verdicts_;  // on the first answers
  std::vector<CheckedRow> rows_;   // to be decoded again
  std::vector<size_t> places_;     // of these in the request
};

}  // namespace ct2triton
