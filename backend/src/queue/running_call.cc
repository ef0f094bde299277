// SPDX-License-Identifier: Apache-2.0
#include "queue/running_call.h"

#include <algorithm>
#include <new>
#include <utility>

#include "steady_clock.h"

namespace ct2triton {
namespace {

bool NobodyWaits(const Job& job) {
  return std::all_of(job.waiters.begin(), job.waiters.end(),
                     [](const Waiter& waiter) { return waiter.listener->Cancelled(); });
}

void DropAbandoned(std::vector<Job>* jobs) {
  const Error cancelled(ErrorCode::kCancelled, "the request was cancelled while it waited");
  const auto gone = std::stable_partition(jobs->begin(), jobs->end(),
                                          [](const Job& j) { return !NobodyWaits(j); });
  std::for_each(gone, jobs->end(), [&](Job& job) { FailJob(&job, cancelled); });
  jobs->erase(gone, jobs->end());
}

CallTimes NoTime() noexcept {
  CallTimes times;
  times.start_ns = times.compute_start_ns = times.compute_end_ns = times.end_ns = SteadyNow_ns();
  return times;
}

Waiter TakeLast(std::vector<Waiter>* waiters) noexcept {
  Waiter waiter = std::move(waiters->back());
  waiters->pop_back();
  return waiter;
}

}  // namespace

void FailJob(Job* job, const Error& error) noexcept {
  job->running = Counted();
  while (!job->waiters.empty()) {
    const Waiter waiter = TakeLast(&job->waiters);
    waiter.listener->RowFailed(waiter.position, error, NoTime());
  }
}

RunningCall::RunningCall(std::vector<Job>* jobs) : jobs_(*jobs), times_(NoTime()) {
  DropAbandoned(jobs);
  rows_.reserve(jobs->size());
  for (const Job& job : *jobs) rows_.push_back(&job.row);
  CountShares();
}

// Without memory to count in, the statistics are lost, and no answer for it.
void RunningCall::CountShares() noexcept {
  try {
    for (const Job& job : jobs_) {
      for (const Waiter& waiter : job.waiters) {
        Share& share = shares_[waiter.listener->observer()];
        ++share.rows;
        ++share.unanswered;
      }
    }
  } catch (const std::bad_alloc&) {
    shares_.clear();
  }
}

bool RunningCall::Abandoned(size_t position) const { return NobodyWaits(jobs_[position]); }

void RunningCall::RowEnded(size_t position, RowResult result) {
  times_.compute_end_ns = times_.end_ns = SteadyNow_ns();
  Deliver(&jobs_[position], std::move(result));
}

void RunningCall::Deliver(std::vector<RowResult> results) {
  times_.end_ns = SteadyNow_ns();
  for (size_t i = 0; i < jobs_.size(); ++i) Deliver(&jobs_[i], std::move(results[i]));
}

void RunningCall::Deliver(Job* job, RowResult result) {
  job->running = Counted();
  while (!job->waiters.empty()) {
    RowResult answer = job->waiters.size() > 1 ? result : std::move(result);
    const Waiter waiter = TakeWaiter(job);
    waiter.listener->RowDone(waiter.position, std::move(answer), times_);
  }
}

void RunningCall::Fail(const Error& error) noexcept {
  times_.compute_end_ns = times_.end_ns = SteadyNow_ns();
  for (Job& job : jobs_) {
    job.running = Counted();
    while (!job.waiters.empty()) {
      const Waiter waiter = TakeWaiter(&job);
      waiter.listener->RowFailed(waiter.position, error, times_);
    }
  }
}

void RunningCall::GiveUp() noexcept {
  for (const auto& [observer, share] : shares_) {
    const size_t answered = share.rows - share.unanswered;
    if (answered > 0 && share.unanswered > 0) observer->CallDone(answered, times_);
  }
  jobs_.erase(std::remove_if(jobs_.begin(), jobs_.end(),
                             [](const Job& job) { return job.waiters.empty(); }),
              jobs_.end());
}

Waiter RunningCall::TakeWaiter(Job* job) noexcept {
  const auto share = shares_.find(job->waiters.back().listener->observer());
  if (share != shares_.end() && --share->second.unanswered == 0) {
    share->first->CallDone(share->second.rows, times_);
  }
  return TakeLast(&job->waiters);
}

}  // namespace ct2triton
