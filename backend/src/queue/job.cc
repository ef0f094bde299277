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

// Cost of a row without tokens, in tokens of one sequence.
constexpr int64_t kTokensOfRow = 8;

int64_t LeastOutput(const CheckedRow& row) noexcept {
  return row.options ? std::min(row.options->min_decoding_length, row.limit_tokens) : 0;
}

}  // namespace

uint64_t LeastCost(const CheckedRow& row) noexcept {
  const auto source = static_cast<int64_t>(row.source.size());
  return static_cast<uint64_t>(row.copies * (kTokensOfRow + source + LeastOutput(row)));
}

void ChargeSteps(const Job& job, int64_t steps) noexcept {
  const int64_t more = steps - LeastOutput(job.row);
  if (job.debt && more > 0) job.debt->tokens += static_cast<uint64_t>(job.row.copies * more);
}

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
