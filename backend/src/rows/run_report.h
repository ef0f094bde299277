// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rows/row.h"
#include "steady_clock.h"

namespace ct2triton {

// When a call or an admission ran; nanoseconds of std::chrono::steady_clock.
struct RunTimes {
  uint64_t start_ns = 0;          // a thread took the rows
  uint64_t compute_start_ns = 0;  // the engine was entered
  uint64_t compute_end_ns = 0;
  uint64_t end_ns = 0;  // results are ready to be handed over
  // Of one row.
  uint64_t queued_ns = 0;   // entered the queue; 0: did not run
  uint64_t encoded_ns = 0;  // its source was encoded; 0: it ran in a call
};

// The times of a run without duration: all are now.
inline RunTimes NoTime() noexcept {
  const uint64_t now_ns = SteadyNow_ns();
  return RunTimes{now_ns, now_ns, now_ns, now_ns, 0, 0};
}

// The work of a run (a call or an admission) for one observer's rows. The only source of statistics
// and metrics.
struct RunReport {
  RunTimes times;
  size_t rows = 0;               // rows of the run; equal rows count separately
  size_t mapped_rows = 0;        // of these, with a vocabulary map
  size_t failed_rows = 0;        // of these, without an answer
  int64_t source_tokens = 0;     // of the rows
  int64_t padding_tokens = 0;    // computed after them, up to the longest source of a call
  int64_t generated_tokens = 0;  // of the best hypotheses, including forced tokens
  int64_t steps = 0;             // decode steps of the longest row, including forced tokens
  std::array<size_t, kFinishReasons> finished{};  // rows by the reason of their best hypothesis
};

}  // namespace ct2triton
