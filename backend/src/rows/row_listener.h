// SPDX-License-Identifier: Apache-2.0
//
// How the worker threads report back to whoever handed them rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "error.h"
#include "rows/row.h"

namespace ct2triton {

// When one call of the engine ran; nanoseconds of std::chrono::steady_clock.
struct CallTimes {
  uint64_t start_ns = 0;          // a worker took the rows
  uint64_t compute_start_ns = 0;  // CTranslate2 was entered
  uint64_t compute_end_ns = 0;
  uint64_t end_ns = 0;  // results are ready to be handed over
};

// Hears of every call in which rows of its own took part (Triton: one model instance, for the
// batch statistics). Called on a worker thread, before the last of its rows in that call is
// delivered.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void CallDone(size_t rows, const CallTimes& times) noexcept = 0;
};

// Waits for the rows of one request. May be called from several worker threads at once.
// Each row is answered exactly once, by RowDone or RowFailed.
class RowListener {
 public:
  virtual ~RowListener() = default;
  virtual CallObserver* observer() const noexcept = 0;
  // True once the client has gone; rows that wait are then failed with kCancelled.
  virtual bool Cancelled() const noexcept = 0;
  virtual void RowDone(size_t row, RowResult result, const CallTimes& times) noexcept = 0;
  virtual void RowFailed(size_t row, const Error& error, const CallTimes& times) noexcept = 0;
};

}  // namespace ct2triton
