// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "engine/calls/call_engine.h"
#include "error.h"
#include "queue/job.h"
#include "rows/run_report.h"

namespace ct2triton {

// Answers rows that run together, in a call or after an admission, each as soon as it has ended.
// Reports the work done.
class RunningRows : public CallWatcher {
 public:
  // `jobs` must outlive it. Cancelled jobs are answered and removed. `padded`: the sources are
  // padded to the longest, as in every call, but not in a loop.
  explicit RunningRows(std::vector<Job>* jobs, bool padded = true);

  const std::vector<const CheckedRow*>& rows() const { return rows_; }
  RunTimes* times() { return &times_; }

  bool Cancelled(size_t position) override;
  void RowGrew(size_t position, int64_t id) override;
  void RowEnded(size_t position, RowResult result) override;

  // Answers the rows that have no answer yet.
  void Deliver(std::vector<RowResult> results);
  void Fail(const Error& error) noexcept;
  void FailRow(size_t position, const Error& error) noexcept;
  // Ends early: jobs without an answer stay in `jobs`.
  void KeepUnanswered() noexcept;

 private:
  // One observer's part. The report is made before its last row is answered, because the observer
  // may be destroyed afterwards.
  struct Share {
    RunReport report;  // of the answered rows
    size_t unanswered = 0;
  };

  void CountShares() noexcept;
  void Deliver(Job* job, RowResult result) noexcept;
  void FailEnded(Job* job) noexcept;
  // Removes one waiter of the job and counts it in the report. Null `result`: the row failed.
  Waiter TakeCounted(Job* job, const RowResult* result) noexcept;
  RunTimes TimesOf(const Job& job) const noexcept;
  RunTimes TimesOf(const Job& job, const Waiter& waiter) const noexcept;
  void ReportRow(const Job& job, const RowResult* result) const noexcept;
  void Report(RunObserver* observer, Share* share) const noexcept;

  std::vector<Job>& jobs_;
  const bool in_loop_;
  std::vector<const CheckedRow*> rows_;
  std::vector<size_t> grown_;  // IDs reported for each row
  size_t padded_tokens_ = 0;   // length that sources are padded to; 0: no padding
  std::map<RunObserver*, Share> shares_;
  RunTimes times_;
};

}  // namespace ct2triton
