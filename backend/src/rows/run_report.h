// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rows/row.h"

namespace ct2triton {

// When a call or an admission ran; nanoseconds of std::chrono::steady_clock.
struct RunTimes {
  uint64_t start_ns = 0;          // a thread took the rows
  uint64_t compute_start_ns = 0;  // the engine was entered
  uint64_t compute_end_ns = 0;
  uint64_t end_ns = 0;  // results are ready to be handed over
  // Of one row.
  uint64_t queued_ns = 0;   // it came into the queue; 0: it did not run
  uint64_t encoded_ns = 0;  // its source was encoded; 0: it ran in a call
};

// The times of a run that took no time: all are now.
RunTimes NoTime() noexcept;

// What a run, a call or an admission, did for the rows of one observer. Statistics and metrics are
// fed from it, and from nothing else.
struct RunReport {
  RunTimes times;
  size_t rows = 0;               // that took part, equal rows of several requests each counted
  size_t mapped_rows = 0;        // of them, with the candidates of the vocabulary map
  size_t failed_rows = 0;        // of them, without an answer
  int64_t source_tokens = 0;     // of the rows
  int64_t padding_tokens = 0;    // computed after them, up to the longest source of a call
  int64_t generated_tokens = 0;  // of the best hypotheses, forced tokens counted
  int64_t steps = 0;             // of the decoder, forced tokens counted: those of the longest row
  std::array<size_t, kFinishReasons> finished{};  // rows by the reason of their best hypothesis
};

}  // namespace ct2triton
