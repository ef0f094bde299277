// SPDX-License-Identifier: Apache-2.0
#include "queue/row_queue.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <string_view>
#include <utility>

#include "error.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

// How often a full queue is searched for rows whose clients have gone: Triton does not report that.
constexpr std::chrono::milliseconds kSweepPeriod(20);

size_t HashIds(const Ids& ids) {
  const std::string_view bytes(reinterpret_cast<const char*>(ids.data()),
                               ids.size() * sizeof(ids[0]));
  return std::hash<std::string_view>()(bytes);
}

size_t HashRow(const CheckedRow& row) {
  return HashIds(row.source) * 31 + HashIds(row.prefix) * 7 + HashIds(row.draft) * 3 +
         static_cast<size_t>(row.limit_tokens);
}

// The turns of the rows of one request lie so far apart, while each row that is taken moves the
// turn of new rows on by at least one: rows that come later go before the request's later rows, and
// still it gets one row in so many.
constexpr uint64_t kTurnsOfRow = 8;

class CallAtEnd {
 public:
  explicit CallAtEnd(const std::function<void()>& call) : call_(call) {}
  ~CallAtEnd() { call_(); }
  CallAtEnd(const CallAtEnd&) = delete;
  CallAtEnd& operator=(const CallAtEnd&) = delete;

 private:
  const std::function<void()>& call_;
};

bool HasSource(const std::vector<Job>& jobs, const Ids& source) {
  return std::any_of(jobs.begin(), jobs.end(),
                     [&source](const Job& job) { return job.row.source == source; });
}

void TakeWaiters(const RowListener& listener, Job* job, std::vector<Waiter>* to) {
  for (size_t i = job->waiters.size(); i-- > 0;) {
    if (job->waiters[i].listener.get() != &listener) continue;
    std::swap(job->waiters[i], job->waiters.back());
    to->push_back(std::move(job->waiters.back()));
    job->waiters.pop_back();
  }
}

}  // namespace

void RowQueue::Add(std::vector<CheckedRow> rows, const std::vector<size_t>& positions,
                   const std::shared_ptr<RowListener>& listener, const QueueShare& share,
                   bool further) {
  const CallAtEnd wake(wake_);  // also where memory runs out half-way: some rows are there then
  std::unique_lock<std::mutex> lock(mutex_);
  if (!further) WaitForSpace(&lock, share);
  const uint64_t now_ns = SteadyNow_ns();
  for (size_t i = 0; i < rows.size(); ++i) {
    Append(std::move(rows[i]),
           Waiter{listener, positions[i], Counted(share.rows), share.decoding, Counted(), now_ns},
           turn_ + i * kTurnsOfRow);
  }
}

void RowQueue::WaitForSpace(std::unique_lock<std::mutex>* lock, const QueueShare& share) {
  const auto has_space = [&] { return *share.rows < share.most_rows || closed_; };
  while (!has_space()) {
    Jobs cancelled = TakeCancelled();
    if (!cancelled.empty()) {
      lock->unlock();
      for (Job& job : cancelled) FailCancelled(&job);
      lock->lock();
      continue;
    }
    space_.wait_for(*lock, kSweepPeriod, has_space);
  }
}

RowQueue::Jobs RowQueue::TakeCancelled() noexcept {
  Jobs cancelled;
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const auto job = it++;
    if (!IsCancelled(*job)) continue;
    Forget(job);
    cancelled.splice(cancelled.end(), jobs_, job);
  }
  return cancelled;
}

void RowQueue::Append(CheckedRow row, Waiter waiter, uint64_t turn) {
  const size_t hash = HashRow(row);
  if (row.repeatable) {
    const auto [begin, end] = by_hash_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (!EqualRows(it->second->row, row)) continue;
      it->second->waiters.push_back(std::move(waiter));
      MoveForward(it->second, turn);
      return;
    }
  }
  const bool repeatable = row.repeatable;
  Job job{std::move(row), {}, hash, turn, ++number_};
  job.waiters.push_back(std::move(waiter));
  const auto added = jobs_.insert(PlaceOf(turn), std::move(job));
  if (added->row.copies == 1) narrow_.emplace(std::pair(turn, added->number), added);
  if (repeatable) by_hash_.emplace(hash, added);
}

RowQueue::Jobs::iterator RowQueue::PlaceOf(uint64_t turn) noexcept {
  auto behind = jobs_.end();
  while (behind != jobs_.begin() && std::prev(behind)->turn > turn) --behind;
  return behind;
}

// An equal row has come whose turn is earlier: nobody waits longer than for a row of one's own.
void RowQueue::MoveForward(Jobs::iterator job, uint64_t turn) noexcept {
  if (turn >= job->turn) return;
  auto narrow = narrow_.extract({job->turn, job->number});
  jobs_.splice(PlaceOf(turn), jobs_, job);
  job->turn = turn;
  job->number = ++number_;
  if (narrow.empty()) return;
  narrow.key() = {job->turn, job->number};
  narrow_.insert(std::move(narrow));
}

std::vector<Job> RowQueue::TakeCall(const CallBounds& bounds, size_t lanes) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (jobs_.empty()) return {};
  const std::vector<size_t> picked = PickCall(bounds, lanes);
  std::vector<Job> call;
  call.reserve(picked.size());  // from here on nothing throws
  auto it = jobs_.begin();
  size_t at = 0;
  for (const size_t position : picked) {
    std::advance(it, position - at);
    call.push_back(Take(it++));
    at = position + 1;
  }
  lock.unlock();
  space_.notify_all();
  return call;
}

std::vector<Job> RowQueue::TakeRows(const AdmissionBounds& bounds, const IsEncoded& encoded) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::vector<Job> rows;
  rows.reserve(std::min(bounds.rows + bounds.narrow_rows, jobs_.size()));
  AdmissionRoom room(bounds);  // from here on nothing throws
  Offer offer = Offer::kTaken;
  for (auto it = jobs_.begin(); it != jobs_.end() && offer == Offer::kTaken;) {
    offer = OfferTo(&room, it++, encoded, &rows);
  }
  // The row that was passed is wide, and so may be thousands behind it.
  for (auto it = narrow_.begin(); it != narrow_.end() && offer != Offer::kEnded;) {
    offer = OfferTo(&room, (it++)->second, encoded, &rows);
  }
  lock.unlock();
  if (!rows.empty()) space_.notify_all();
  return rows;
}

Offer RowQueue::OfferTo(AdmissionRoom* room, Jobs::iterator job, const IsEncoded& encoded,
                        std::vector<Job>* taken) {
  const CheckedRow& row = job->row;
  const bool shares = HasSource(*taken, row.source) || encoded(row);
  const Offer offer = room->Take({static_cast<size_t>(row.copies),
                                  row.prefix.size() + (shares ? 0 : row.source.size()),
                                  row.cache_bytes + (shares ? 0 : row.source_cache_bytes)});
  if (offer == Offer::kTaken) taken->push_back(Take(job));
  return offer;
}

Job RowQueue::Take(Jobs::iterator it) noexcept {
  Forget(it);
  for (Waiter& waiter : it->waiters) {
    waiter.waiting = Counted();
    waiter.runs = Counted(waiter.decoding);
  }
  Job job = std::move(*it);
  jobs_.erase(it);
  job.running = Counted(running_);
  turn_ = std::max(turn_ + 1, job.turn);
  return job;
}

std::vector<size_t> RowQueue::PickCall(CallBounds bounds, size_t lanes) const {
  std::vector<WaitingRow> candidates;
  candidates.reserve(jobs_.size());
  const CheckedRow& first = jobs_.front().row;
  for (const Job& job : jobs_) {
    candidates.push_back({static_cast<int64_t>(job.row.source.size()), job.row.copies,
                          Joins(first, job.row), job.row.search_tokens});
  }
  bounds.max_rows = std::min(bounds.max_rows, FairShare(jobs_.size(), *running_, lanes));
  return PickRows(candidates, bounds);
}

bool RowQueue::Joins(const CheckedRow& first, const CheckedRow& row) const {
  if (&first == &row) return true;
  if (!MayShareCall(first.key, row.key)) return false;
  return !first.may_overrun || first.limit_tokens == row.limit_tokens ||
         limit_rates_.AllowOverrun(first.key);
}

void RowQueue::Forget(Jobs::iterator job) noexcept {
  const auto [begin, end] = by_hash_.equal_range(job->hash);
  const auto known =
      std::find_if(begin, end, [job](const auto& entry) { return entry.second == job; });
  if (known != end) by_hash_.erase(known);
  narrow_.erase({job->turn, job->number});
}

// Where there is no memory to collect them in, rows stay until a worker would take them.
void RowQueue::Withdraw(const RowListener& listener, const Error& error) noexcept {
  std::vector<Waiter> withdrawn;
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = jobs_.begin(); it != jobs_.end();) {
      const auto job = it++;
      TakeWaiters(listener, &*job, &withdrawn);
      if (!job->waiters.empty()) continue;
      Forget(job);
      jobs_.erase(job);
    }
  } catch (const std::bad_alloc&) {
  }
  for (Waiter& waiter : withdrawn) {
    waiter.waiting = Counted();
    waiter.listener->RowFailed(waiter.position, error, NoTime());
  }
  space_.notify_all();
}

void RowQueue::FailFirst(const Error& error) noexcept {
  Jobs first;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (jobs_.empty()) return;  // another thread took it
    Forget(jobs_.begin());
    first.splice(first.begin(), jobs_, jobs_.begin());
  }
  FailJob(&first.front(), error);
  space_.notify_all();
}

void RowQueue::CountLimit(const CheckedRow& row, bool reached_limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  limit_rates_.Count(row.key, reached_limit);
}

size_t RowQueue::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return jobs_.size();
}

size_t RowQueue::step_rows(size_t most) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t rows = 0;
  for (auto job = jobs_.begin(); job != jobs_.end() && rows < most; ++job) {
    rows += static_cast<size_t>(job->row.copies);
  }
  return rows;
}

size_t RowQueue::first_cache_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (jobs_.empty()) return 0;
  const CheckedRow& first = jobs_.front().row;
  return first.cache_bytes + first.source_cache_bytes;
}

bool RowQueue::closed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

void RowQueue::Close() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  space_.notify_all();
  wake_();
}

}  // namespace ct2triton
