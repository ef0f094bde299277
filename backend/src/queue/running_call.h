// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "engine/calls/engine.h"
#include "error.h"
#include "queue/job.h"

namespace ct2triton {

// Answers the rows of one call of the engine, each as soon as it has ended.
class RunningCall : public CallWatcher {
 public:
  // `jobs` outlives the call. Those that nobody waits for any more are answered and taken out.
  explicit RunningCall(std::vector<Job>* jobs);

  const std::vector<const CheckedRow*>& rows() const { return rows_; }
  CallTimes* times() { return &times_; }

  bool Abandoned(size_t position) const override;
  void RowEnded(size_t position, RowResult result) override;

  // Answers what has not been answered yet.
  void Deliver(std::vector<RowResult> results);
  void Fail(const Error& error) noexcept;
  // Ends the call before all of it has been answered: leaves the other jobs alone in `jobs`.
  void GiveUp() noexcept;

 private:
  // What one Triton instance has in this call. It hears of the call before its last row is
  // answered: after that it may be gone.
  struct Share {
    size_t rows = 0;
    size_t unanswered = 0;
  };

  void CountShares() noexcept;
  void Deliver(Job* job, RowResult result);
  Waiter TakeWaiter(Job* job) noexcept;

  std::vector<Job>& jobs_;
  std::vector<const CheckedRow*> rows_;
  std::map<CallObserver*, Share> shares_;
  CallTimes times_;
};

// Answers a job that is in no call.
void FailJob(Job* job, const Error& error) noexcept;

}  // namespace ct2triton
