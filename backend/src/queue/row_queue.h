// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "queue/call_plan.h"
#include "queue/job.h"
#include "queue/limit_rates.h"

namespace ct2triton {

// What one model may have waiting. Models that share workers have one each.
struct QueueShare {
  explicit QueueShare(size_t most) : most_rows(most) {}
  const Counter rows = std::make_shared<std::atomic<size_t>>(0);
  const size_t most_rows;  // at which nothing more is accepted
};

// Rows that wait for a worker, in order of arrival. Equal ones become one job.
class RowQueue {
 public:
  explicit RowQueue(size_t workers) : workers_(workers) {}

  // Accepts the rows of one request; blocks while `share` is full. `positions`: the place of each
  // row in its request, under which its listener hears of it.
  void Add(std::vector<CheckedRow> rows, const std::vector<size_t>& positions,
           const std::shared_ptr<RowListener>& listener, const QueueShare& share);

  // The rows of the next call: the one that has waited longest, and those most like it. Blocks;
  // empty once the queue is closed. An exception leaves the queue as it was.
  std::vector<Job> TakeCall(const CallBounds& bounds);
  // Fails the waiting rows of one listener; equal rows of others go on waiting.
  void Withdraw(const RowListener& listener, const Error& error) noexcept;
  // Fails the row that has waited longest.
  void FailOldest(const Error& error) noexcept;

  // The search of this row has reached its limit, or ended before.
  void CountLimit(const CheckedRow& row, bool reached_limit);

  bool empty() const;
  // No row comes any more; those that wait are still handed out.
  void Close() noexcept;

 private:
  using Jobs = std::list<Job>;

  void WaitForSpace(std::unique_lock<std::mutex>* lock, const QueueShare& share);
  void Append(CheckedRow row, Waiter waiter);
  bool Joins(const CheckedRow& first, const CheckedRow& row) const;
  std::vector<size_t> PickCall(CallBounds bounds) const;
  void ForgetHash(Jobs::iterator job) noexcept;
  Jobs TakeCancelled() noexcept;

  const size_t workers_;
  const Counter running_ = std::make_shared<std::atomic<size_t>>(0);  // taken and not answered

  mutable std::mutex mutex_;
  std::condition_variable work_;   // rows wait, or the queue is closed
  std::condition_variable space_;  // fewer rows wait
  Jobs jobs_;
  std::unordered_multimap<size_t, Jobs::iterator> by_hash_;  // rows that equal ones may join
  LimitRates limit_rates_;
  bool closed_ = false;
};

}  // namespace ct2triton
