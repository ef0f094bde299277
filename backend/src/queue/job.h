// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// The order of jobs in a queue: by turn, then by a number that no other job has.
using Place = std::pair<uint64_t, uint64_t>;

// A request's row: reported under `position`, the row's place in that request.
struct Waiter {
  std::shared_ptr<RowListener> listener;
  size_t position = 0;
  Counted waiting;         // among the waiting rows of its model; empty once it runs
  Counter decoding;        // the rows of its model that run
  Counted runs;            // among these, once it does
  uint64_t queued_ns = 0;  // when it came

  // While it waits: its job, its place there, and the neighbours that have the same listener.
  Job* job = nullptr;
  std::list<Waiter>::iterator self{};
  Waiter* previous = nullptr;
  Waiter* next = nullptr;
};
using Waiters = std::list<Waiter>;

// A row to run and its waiters, several where rows were equal. Answered ones are taken out.
struct Job {
  CheckedRow row;
  Waiters waiters;
  TenantJobs* tenant = nullptr;  // among whose jobs it waits
  size_t hash = 0;
  Place place{};
  size_t grown = 0;   // ids of its answer that were reported; it may run again after a failure
  Counted running{};  // among the rows that are run; set while it is
  uint64_t first_token_ns = 0;  // when the first id was reported that was not forced
  uint64_t last_token_ns = 0;   // the last one so far
  uint64_t longest_gap_ns = 0;  // between two of them
};

// All its waiters were cancelled.
bool IsCancelled(const Job& job) noexcept;

// Takes the last waiter.
Waiter TakeWaiter(Job* job) noexcept;

// Answers a job that is in no call.
void FailJob(Job* job, const Error& error) noexcept;
// Answers waiters that were taken out of the queue.
void FailWaiters(Waiters waiters, const Error& error) noexcept;

// For rows that were cancelled before they ran, and while they ran.
const Error& CancelledWhileWaiting() noexcept;
const Error& CancelledWhileRunning() noexcept;

}  // namespace ct2triton
