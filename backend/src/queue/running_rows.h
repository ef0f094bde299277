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

// Answers rows that run together, of a call or of an admission, each as soon as it has ended, and
// reports what was done.
class RunningRows : public CallWatcher {
 public:
  // `jobs` outlives it. Cancelled ones are answered and taken out.
  // `padded`: the sources are padded to the longest, as in every call, but not in a loop.
  explicit RunningRows(std::vector<Job>* jobs, bool padded = true);

  const std::vector<const CheckedRow*>& rows() const { return rows_; }
  RunTimes* times() { return &times_; }

  bool Cancelled(size_t position) override;
  void RowGrew(size_t position, int64_t id) override;
  void RowEnded(size_t position, RowResult result) override;

  // Answers what has not been answered yet.
  void Deliver(std::vector<RowResult> results);
  void Fail(const Error& error) noexcept;
  void FailRow(size_t position, const Error& error) noexcept;
  // Ends before all of them have been answered: the other jobs stay in `jobs`.
  void KeepUnanswered() noexcept;

 private:
  // The part of one observer, which gets its report before its last row is answered: after that it
  // may be gone.
  struct Share {
    RunReport report;  // of the rows that have been answered
    size_t unanswered = 0;
  };

  void CountShares() noexcept;
  void Deliver(Job* job, RowResult result) noexcept;
  void FailEnded(Job* job) noexcept;
  // Takes one waiter of the job's row, with its part in the report. `result` null: it failed.
  Waiter TakeCounted(Job* job, const RowResult* result) noexcept;
  RunTimes TimesOf(const Waiter& waiter) const noexcept;
  void ReportRow(const Job& job, const RowResult* result) const noexcept;
  void Report(RunObserver* observer, Share* share) const noexcept;

  std::vector<Job>& jobs_;
  const bool in_loop_;
  std::vector<const CheckedRow*> rows_;
  std::vector<size_t> grown_;  // ids of each row
  size_t padded_tokens_ = 0;   // of each source; 0: none is padded
  std::map<RunObserver*, Share> shares_;
  RunTimes times_;
};

}  // namespace ct2triton
