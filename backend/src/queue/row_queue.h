// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "queue/admission_room.h"
#include "queue/call_plan.h"
#include "queue/job.h"
#include "queue/limit_rates.h"

namespace ct2triton {

// What one model may have waiting. Models that share workers have one each.
struct QueueShare {
  explicit QueueShare(size_t most) : most_rows(most) {}
  const Counter rows = std::make_shared<std::atomic<size_t>>(0);
  const Counter decoding = std::make_shared<std::atomic<size_t>>(0);  // rows that were taken
  const size_t most_rows;  // at which nothing more is accepted
};

// Whether a row's source need not be encoded any more; called under the queue's lock.
using IsEncoded = std::function<bool(const CheckedRow&)>;

// Rows that wait, each request's in order of arrival; a request of many rows takes turns with those
// that came later. Equal rows become one job. Threads may use it at once.
class RowQueue {
 public:
  // `wake`: called when rows have come or the queue was closed, without a lock.
  explicit RowQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Accepts rows of one request; blocks while `share` is full, unless they are `further` ones of a
  // request that was accepted. `positions`: the place of each row in its request, under which its
  // listener hears of it.
  void Add(std::vector<CheckedRow> rows, const std::vector<size_t>& positions,
           const std::shared_ptr<RowListener>& listener, const QueueShare& share,
           bool further = false);

  // The rows of the next call: the one whose turn it is, and those most like it, but no more than
  // is fair where `lanes` calls may run side by side. Empty if none waits. An exception leaves the
  // queue as it was.
  std::vector<Job> TakeCall(const CallBounds& bounds, size_t lanes);
  // Rows for a loop, in turn, but that narrow ones may go past wide ones; a source that several
  // have is counted once. Likewise.
  std::vector<Job> TakeRows(const AdmissionBounds& bounds, const IsEncoded& encoded);
  // Fails the waiting rows of one listener; equal rows of others go on waiting.
  void Withdraw(const RowListener& listener, const Error& error) noexcept;
  // Fails the row whose turn it is.
  void FailFirst(const Error& error) noexcept;

  // The search of this row has reached its limit, or ended before.
  void CountLimit(const CheckedRow& row, bool reached_limit);

  size_t size() const;  // jobs that wait
  // What they are in a step of a loop, where each beam counts; counted up to about `most`.
  size_t step_rows(size_t most) const;
  size_t first_cache_bytes() const;  // of the row whose turn it is, and its source; 0: none waits
  // No row comes any more; those that wait are still handed out.
  void Close() noexcept;
  bool closed() const;

 private:
  using Jobs = std::list<Job>;

  void WaitForSpace(std::unique_lock<std::mutex>* lock, const QueueShare& share);
  void Append(CheckedRow row, Waiter waiter, uint64_t turn);
  Jobs::iterator PlaceOf(uint64_t turn) noexcept;
  void MoveForward(Jobs::iterator job, uint64_t turn) noexcept;
  Job Take(Jobs::iterator it) noexcept;
  bool Joins(const CheckedRow& first, const CheckedRow& row) const;
  std::vector<size_t> PickCall(CallBounds bounds, size_t lanes) const;
  Offer OfferTo(AdmissionRoom* room, Jobs::iterator job, const IsEncoded& encoded,
                std::vector<Job>* taken);
  void Forget(Jobs::iterator job) noexcept;
  Jobs TakeCancelled() noexcept;

  const std::function<void()> wake_;
  const Counter running_ = std::make_shared<std::atomic<size_t>>(0);  // taken and not answered

  mutable std::mutex mutex_;
  std::condition_variable space_;  // fewer rows wait
  Jobs jobs_;
  std::unordered_multimap<size_t, Jobs::iterator> by_hash_;  // rows that equal ones may join
  // Jobs of rows with one sequence, by turn and number: those that may go past the others.
  std::map<std::pair<uint64_t, uint64_t>, Jobs::iterator> narrow_;
  LimitRates limit_rates_;
  uint64_t turn_ = 0;    // of rows that come now
  uint64_t number_ = 0;  // of the next job
  bool closed_ = false;
};

}  // namespace ct2triton
