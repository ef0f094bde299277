// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "queue/count.h"
#include "rows/checked_row.h"
#include "rows/row_listener.h"

namespace ct2triton {

struct Job;
struct TenantJobs;

// What rows of a tenant have cost beyond what was known when they were taken. Thread-safe.
struct TenantDebt {
  std::atomic<uint64_t> tokens{0};
};

// The order of jobs in a queue: by position, then by a number that is unique to the job.
using Place = std::pair<uint64_t, uint64_t>;

// A row of a request. `position`: of the row in the request.
struct Waiter {
  std::shared_ptr<RowListener> listener;
  size_t position = 0;
  Counted waiting;         // counts it as waiting in its model; empty once it runs
  Counter decoding;        // running rows of its model
  Counted runs;            // counts it in `decoding` once it runs
  uint64_t queued_ns = 0;  // arrival time

  // While it waits: its job, its index there, and its neighbors in the list of the same listener.
  Job* job = nullptr;
  std::list<Waiter>::iterator self{};
  Waiter* previous = nullptr;
  Waiter* next = nullptr;
};
using Waiters = std::list<Waiter>;

// A row to run and its waiters: several if equal rows were joined. Answered waiters are removed.
struct Job {
  CheckedRow row;
  Waiters waiters;
  TenantJobs* tenant = nullptr;  // the tenant whose job it is; only while it waits
  size_t hash = 0;
  Place place{};
  std::shared_ptr<TenantDebt> debt;
  size_t grown = 0;             // output IDs reported so far; it may run again after a failure
  Counted running{};            // counts it as running; set while it runs
  uint64_t first_token_ns = 0;  // when the first ID that was not forced was reported
  uint64_t last_token_ns = 0;   // when the last ID so far was reported
  uint64_t longest_gap_ns = 0;  // between two reported IDs
  // If its source is encoded beside the loops (EncodeWork), else 0:
  uint64_t taken_ns = 0;    // when it left the queue
  uint64_t encoded_ns = 0;  // when its source was encoded; 0: it failed, or has not been yet
};

// The cost of a row by which tenants share, in tokens of one sequence, as far as it is known before
// it runs: its output may be longer.
uint64_t LeastCost(const CheckedRow& row) noexcept;
// Adds the rest once it has run for so many steps.
void ChargeSteps(const Job& job, int64_t steps) noexcept;

// Whether all its waiters were cancelled.
bool IsCancelled(const Job& job) noexcept;

// Removes and returns the last waiter.
Waiter TakeWaiter(Job* job) noexcept;

// Answers a job that does not run.
void FailJob(Job* job, const Error& error) noexcept;
// Answers waiters that were taken out of the queue.
void FailWaiters(Waiters waiters, const Error& error) noexcept;

// For rows cancelled before they ran, and for rows cancelled while they ran.
const Error& CancelledWhileWaiting() noexcept;
const Error& CancelledWhileRunning() noexcept;

}  // namespace ct2triton
