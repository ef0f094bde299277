// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "queue/admission_room.h"
#include "queue/call_plan.h"
#include "queue/job.h"
#include "queue/limit_rates.h"
#include "queue/waiting_jobs.h"
#include "steady_clock.h"

namespace ct2triton {

// The waiting rows of one model. Models that share weights have one each.
struct QueueShare {
  explicit QueueShare(size_t most) : most_rows(most) {}
  const Counter rows = std::make_shared<Count>();
  const Counter decoding = std::make_shared<Count>();  // rows that run
  const size_t most_rows;                              // limit at which no more should be added
};

// kTaken: another thread has taken it and will encode it, so its rows wait until it has.
enum class SourceState { kNew, kTaken, kEncoded };
// Of a row's source; called under the queue's lock.
using AskSource = std::function<SourceState(const CheckedRow&)>;

// The waiting rows. The rows of a request stay in order, but alternate with those of later
// requests, and tenants have equal shares. Equal rows of a tenant become one job. Thread-safe.
class RowQueue {
 public:
  // `wake`: called without a lock when rows were added or withdrawn, or the queue was closed.
  explicit RowQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Accepts rows of one request, even if `share` is full. `positions`: of each row in its request,
  // for the listener. `queued_ns`: since when they wait.
  void Add(std::vector<CheckedRow> rows, const std::vector<size_t>& positions,
           const std::shared_ptr<RowListener>& listener, const QueueShare& share,
           uint64_t queued_ns = SteadyNow_ns());

  // The rows of the next call: the first row and, of some after it, those closest to it in length.
  // No more than a fair share if `lanes` calls may run at once. Empty if no row waits. An exception
  // changes nothing.
  std::vector<Job> TakeCall(const CallBounds& bounds, size_t lanes);
  // Rows for a loop, in order, except that narrow rows may overtake wide ones. A source shared by
  // several rows is counted once. `sources`: different ones at most. An exception changes nothing.
  std::vector<Job> TakeRows(const AdmissionBounds& bounds, const AskSource& ask,
                            size_t sources = SIZE_MAX);
  // Fails the waiting rows of one listener; equal rows of other listeners keep waiting.
  void Withdraw(const RowListener& listener, const Error& error) noexcept;
  // Fails the waiting rows whose clients have gone; Triton does not report that.
  void DropCancelled() noexcept;
  // Fails the first row.
  void FailFirst(const Error& error) noexcept;

  // How many waiting rows of a tenant the last of so many new ones would follow; at most `most`.
  size_t Ahead(std::string_view tenant, size_t rows, size_t most);

  // Records whether the search of this row reached its limit.
  void CountLimit(const CheckedRow& row, bool reached_limit);

  // Read without a lock; may be stale.
  size_t size() const { return size_; }            // jobs that wait
  size_t sequences() const { return sequences_; }  // that their rows have in a step of a loop
  // Of the first row and its source; 0: no row waits.
  size_t first_cache_bytes() const { return first_cache_bytes_; }
  uint64_t first_queued_ns() const { return first_queued_ns_; }  // likewise, its arrival time
  // No more rows may be added; waiting ones are still handed out.
  void Close() noexcept;
  bool closed() const { return closed_; }

 private:
  Job Take(Job* job) noexcept;
  bool Joins(const CheckedRow& first, const CheckedRow& row) const;
  std::vector<Job*> PickCall(CallBounds bounds, size_t lanes);
  void TakeInto(std::vector<Job>* rows, AdmissionRoom* room, const AskSource& ask, size_t sources);
  Offer OfferTo(AdmissionRoom* room, Job* job, bool shares, std::vector<Job>* taken);
  void Publish() noexcept;

  const std::function<void()> wake_;
  const Counter running_ = std::make_shared<Count>();  // taken and not answered

  std::mutex mutex_;
  WaitingJobs jobs_;
  LimitRates limit_rates_;

  // Read without the lock; written under it.
  std::atomic<size_t> size_{0};
  std::atomic<size_t> sequences_{0};
  std::atomic<size_t> first_cache_bytes_{0};
  std::atomic<uint64_t> first_queued_ns_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace ct2triton
