// SPDX-License-Identifier: Apache-2.0
#include "queue/job.h"

#include <algorithm>

#include "steady_clock.h"

namespace ct2triton {
namespace {

const Error cancelled_while_waiting(ErrorCode::kCancelled,
                                    "the request was cancelled while it waited");
const Error cancelled_while_running(ErrorCode::kCancelled,
                                    "the request was cancelled while it ran");

}  // namespace

bool IsCancelled(const Job& job) noexcept {
  return std::all_of(job.waiters.begin(), job.waiters.end(),
                     [](const Waiter& waiter) { return waiter.listener->Cancelled(); });
}

Waiter TakeWaiter(Job* job) noexcept {
  Waiter waiter = std::move(job->waiters.back());
  job->waiters.pop_back();
  return waiter;
}

void FailJob(Job* job, const Error& error) noexcept {
  job->running = Counted();
  while (!job->waiters.empty()) {
    const Waiter waiter = TakeWaiter(job);
    waiter.listener->RowFailed(waiter.position, error, NoTime());
  }
}

void FailWaiters(Waiters waiters, const Error& error) noexcept {
  for (Waiter& waiter : waiters) {
    waiter.waiting = Counted();
    waiter.listener->RowFailed(waiter.position, error, NoTime());
  }
}

const Error& CancelledWhileWaiting() noexcept { return cancelled_while_waiting; }
const Error& CancelledWhileRunning() noexcept { return cancelled_while_running; }

}  // namespace ct2triton
