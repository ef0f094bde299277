// SPDX-License-Identifier: Apache-2.0
//
// How worker threads report to the owner of the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "error.h"
#include "rows/row.h"
#include "rows/row_report.h"
#include "rows/run_report.h"

namespace ct2triton {

// Receives a report of every call and admission that had rows of its requests; a model instance
// counts Triton's statistics from it. Called on a worker thread, before the last of these rows is
// answered.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // A row has left its run, or was empty. Called before it is answered.
  virtual void RowLeft(const RowReport& report) noexcept;
  virtual void RunDone(const RunReport& report) noexcept = 0;
};

// Receives the results of one request's rows. Called from several worker threads at once. Each row
// is answered exactly once, by RowDone or RowFailed.
class RowListener {
 public:
  virtual ~RowListener() = default;
  virtual RunObserver* observer() const noexcept = 0;
  // The request's tenant; tenants have equal shares of a queue. Does not change.
  virtual std::string_view tenant() const noexcept;
  // True once the client has gone; waiting rows are then failed with kCancelled.
  virtual bool Cancelled() const noexcept = 0;
  // True once a newer request has superseded this one, or its deadline has passed. Its rows are
  // then failed between two steps, while other requests continue.
  virtual bool Ended() const noexcept;
  // The output of this row has grown by one ID, which will not change. Only for greedy rows. Unless
  // the row fails, the reported IDs are its answer.
  virtual void RowGrew(size_t row, int64_t id) noexcept;
  virtual void RowDone(size_t row, RowResult result, const RunTimes& times) noexcept = 0;
  virtual void RowFailed(size_t row, const Error& error, const RunTimes& times) noexcept = 0;
};

inline void RunObserver::RowLeft(const RowReport&) noexcept {}
inline std::string_view RowListener::tenant() const noexcept { return {}; }
inline bool RowListener::Ended() const noexcept { return false; }
inline void RowListener::RowGrew(size_t, int64_t) noexcept {}

}  // namespace ct2triton
