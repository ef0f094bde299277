// SPDX-License-Identifier: Apache-2.0
#include "queue/row_queue.h"

#include <algorithm>
#include <utility>

#include "error.h"

namespace ct2triton {
namespace {

// Rows passed over because another loop encodes their source. Behind so many, the next one joins
// and may have to wait for the other loop.
constexpr size_t kMostSkipped = 64;

// Long rows passed over because enough of them wait to be encoded. Behind so many, all rows wait.
constexpr size_t kMostLongSkipped = 1024;

// Distance between the rows of one request in the order of the queue. Each row that is taken
// advances the position of new rows by at least one. So rows of later requests overtake this
// request's later rows, and it still gets one row in this many.
constexpr uint64_t kRowSpacing = 8;

// A call chooses each of its rows from this many waiting rows.
constexpr size_t kCandidatesOfRow = 16;

template <class Action>
class AtEnd {
 public:
  explicit AtEnd(const Action& action) : action_(action) {}
  ~AtEnd() { action_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  const Action& action_;
};

bool HasSource(const std::vector<Job>& jobs, const Ids& source) {
  return std::any_of(jobs.begin(), jobs.end(),
                     [&source](const Job& job) { return job.row.source == source; });
}

}  // namespace

void RowQueue::Add(std::vector<CheckedRow> rows, const std::vector<size_t>& positions,
                   const std::shared_ptr<RowListener>& listener, const QueueShare& share,
                   uint64_t queued_ns) {
  const AtEnd wake(wake_);  // also if memory runs out, because some rows were added then
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto publish = [this] { Publish(); };
  const AtEnd published(publish);
  for (size_t i = 0; i < rows.size(); ++i) {
    Waiter waiter{listener,       positions[i], Counted(share.rows),
                  share.decoding, Counted(),    queued_ns};
    jobs_.Add(std::move(rows[i]), std::move(waiter), listener->tenant(), i * kRowSpacing);
  }
}

void RowQueue::DropCancelled() noexcept {
  Waiters cancelled;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled = jobs_.TakeCancelled();
    Publish();
  }
  if (!cancelled.empty()) wake_();  // a workload without rows is no longer active
  FailWaiters(std::move(cancelled), CancelledWhileWaiting());
}

void RowQueue::Publish() noexcept {
  const Job* const first = jobs_.First();
  first_queued_ns_ = first == nullptr ? 0 : first->waiters.front().queued_ns;
  size_ = jobs_.size();
  sequences_ = jobs_.sequences();
  first_cache_bytes_ =
      first == nullptr ? 0 : first->row.cache_bytes + first->row.source_cache_bytes;
}

std::vector<Job> RowQueue::TakeCall(const CallBounds& bounds, size_t lanes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (jobs_.empty()) return {};
  const std::vector<Job*> picked = PickCall(bounds, lanes);
  std::vector<Job> call;
  call.reserve(picked.size());  // from here on nothing throws
  for (Job* job : picked) call.push_back(Take(job));
  Publish();
  return call;
}

std::vector<Job> RowQueue::TakeRows(const AdmissionBounds& bounds, const AskSource& ask,
                                    size_t sources) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Job> rows;
  rows.reserve(std::min(bounds.sequences + bounds.narrow_rows, jobs_.size()));
  AdmissionRoom room(bounds);  // from here on nothing throws
  TakeInto(&rows, &room, ask, sources);
  Publish();
  return rows;
}

void RowQueue::TakeInto(std::vector<Job>* rows, AdmissionRoom* room, const AskSource& ask,
                        size_t sources) {
  WaitingJobs::Cursor cursor(&jobs_);
  Offer offer = Offer::kTaken;
  size_t skipped = 0;
  size_t long_skipped = 0;
  // A row that was passed over is wide, and thousands of wide rows may follow it.
  for (bool passing = false; offer != Offer::kEnded; passing |= offer == Offer::kPassed) {
    Job* const job = passing ? cursor.NextNarrow() : cursor.Next();
    if (job == nullptr) break;
    const bool shares = HasSource(*rows, job->row.source);
    if (!shares && room->Skips(job->row.prefix.size() + job->row.source.size())) {
      if (++long_skipped > kMostLongSkipped) break;
      continue;
    }
    if (!shares && sources == 0) {
      if (++skipped > kMostSkipped) break;
      continue;
    }
    const SourceState source = shares ? SourceState::kEncoded : ask(job->row);
    if (source == SourceState::kTaken && ++skipped <= kMostSkipped) continue;
    offer = OfferTo(room, job, source != SourceState::kNew, rows);
    if (offer == Offer::kTaken && !shares) --sources;
  }
}

// `shares`: the encoding of its source.
Offer RowQueue::OfferTo(AdmissionRoom* room, Job* job, bool shares, std::vector<Job>* taken) {
  const CheckedRow& row = job->row;
  const Offer offer = room->Take({static_cast<size_t>(row.copies),
                                  row.prefix.size() + (shares ? 0 : row.source.size()),
                                  row.cache_bytes + (shares ? 0 : row.source_cache_bytes)});
  if (offer == Offer::kTaken) taken->push_back(Take(job));
  return offer;
}

Job RowQueue::Take(Job* waiting) noexcept {
  Job job = jobs_.Take(waiting);
  for (Waiter& waiter : job.waiters) {
    waiter.runs = Counted(waiter.decoding);  // first, so that it is always counted
    waiter.waiting = Counted();
  }
  job.running = Counted(running_);
  return job;
}

std::vector<Job*> RowQueue::PickCall(CallBounds bounds, size_t lanes) {
  bounds.max_rows = std::min(bounds.max_rows, FairShare(jobs_.size(), running_->value(), lanes));
  const size_t most = bounds.max_rows == 1 ? 1 : bounds.max_rows * kCandidatesOfRow;
  std::vector<Job*> jobs;
  std::vector<WaitingRow> candidates;
  jobs.reserve(std::min(most, jobs_.size()));
  candidates.reserve(jobs.capacity());
  WaitingJobs::Cursor cursor(&jobs_);
  for (Job* job = cursor.Next(); job != nullptr && jobs.size() < most; job = cursor.Next()) {
    jobs.push_back(job);
    candidates.push_back({static_cast<int64_t>(job->row.source.size()), job->row.copies,
                          Joins(jobs.front()->row, job->row), job->row.search_tokens});
  }
  std::vector<Job*> picked;
  for (const size_t position : PickRows(candidates, bounds)) picked.push_back(jobs[position]);
  return picked;
}

bool RowQueue::Joins(const CheckedRow& first, const CheckedRow& row) const {
  if (&first == &row) return true;
  if (!MayShareCall(first.key, row.key)) return false;
  return !first.may_overrun || first.limit_tokens == row.limit_tokens ||
         limit_rates_.AllowOverrun(first.key);
}

void RowQueue::Withdraw(const RowListener& listener, const Error& error) noexcept {
  Waiters withdrawn;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    withdrawn = jobs_.TakeWaiters(listener);
    Publish();
  }
  if (withdrawn.empty()) return;
  wake_();
  FailWaiters(std::move(withdrawn), error);  // answering the last of them may destroy this queue
}

void RowQueue::FailFirst(const Error& error) noexcept {
  Job first;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (jobs_.empty()) return;  // another thread took it
    first = jobs_.Take(jobs_.First());
    Publish();
  }
  FailWaiters(std::move(first.waiters), error);
}

size_t RowQueue::Ahead(std::string_view tenant, size_t rows, size_t most) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return jobs_.Ahead(tenant, (rows - 1) * kRowSpacing, most);
}

void RowQueue::CountLimit(const CheckedRow& row, bool reached_limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  limit_rates_.Count(row.key, reached_limit);
}

void RowQueue::Close() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  wake_();
}

}  // namespace ct2triton
