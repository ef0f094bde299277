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
// retry). Not thread-safe.
class RowRetries {
 public:
  // Null unless flagged rows of a request with these options are decoded again, which requires a
  // greedy search. `judging`: of the request; `model` must outlive it.
  static std::unique_ptr<RowRetries> For(const DecodingOptions& options,
                                         const EngineOptions& engine, const LoadedModel& model,
                                         const Judging& judging);

  // Stores the next row of the request. Returns its approximate memory in bytes.
  size_t Add(const CheckedRow& row);
  // Judges a slice of the answers, in the order of the rows; false while there are more.
  bool Judge(const AnswerEncoder& encoder, const std::vector<RowResult>& answers);
  // The flagged rows, with the options of the second search. Call once all are judged.
  std::vector<CheckedRow> TakeRows();
  // `answers` ends with those of the rows from TakeRows; one without hypotheses has failed. Removes
  // them, replaces each first answer if the second has a better verdict, and passes all verdicts to
  // the encoder.
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
  std::vector<size_t> places_;     // their indices in the request
};

}  // namespace ct2triton
