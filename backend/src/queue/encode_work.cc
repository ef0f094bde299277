// SPDX-License-Identifier: Apache-2.0
#include "queue/encode_work.h"

#include <algorithm>
#include <utility>

#include "steady_clock.h"

namespace ct2triton {
namespace {

size_t SequencesOf(const Job& job) { return static_cast<size_t>(job.row.copies); }

size_t SequencesOf(const std::vector<Job>& jobs) {
  size_t count = 0;
  for (const Job& job : jobs) count += SequencesOf(job);
  return count;
}

}  // namespace

EncodeWork::EncodeWork(std::shared_ptr<const LoopModel> model, std::shared_ptr<Scheduler> scheduler,
                       std::function<void()> ready, const void* owner, size_t most_helpers)
    : model_(std::move(model)),
      scheduler_(std::move(scheduler)),
      ready_(std::move(ready)),
      most_helpers_(most_helpers) {
  scheduler_->Add(this, owner);
}

EncodeWork::~EncodeWork() { scheduler_->Drain(this); }

bool EncodeWork::Add(Job* row) noexcept {
  try {
    Put(row, 1, State::kWaiting);
  } catch (...) {
    return false;
  }
  scheduler_->Wake(this);
  return true;
}

std::optional<EncodeWork::Begun> EncodeWork::Begin(std::vector<Job>* rows) {
  const auto source = Put(rows->data(), rows->size(), State::kRunning);
  rows->clear();
  return source == sources_.end() ? std::nullopt : std::make_optional(source);
}

bool EncodeWork::Has(const Ids& source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Find(source) != sources_.end();
}

EncodeWork::Sources::iterator EncodeWork::Find(const Ids& source) {
  return std::find_if(sources_.begin(), sources_.end(), [&source](const Source& known) {
    return known.jobs.front().row.source == source;
  });
}

// Returns the source of these rows if it is new, then in this state, else the end: they joined it.
EncodeWork::Sources::iterator EncodeWork::Put(Job* rows, size_t count, State state) {
  const uint64_t now_ns = SteadyNow_ns();
  const std::lock_guard<std::mutex> lock(mutex_);
  auto source = Find(rows->row.source);
  Sources fresh;
  if (source == sources_.end()) {
    source = fresh.emplace(fresh.end());
    source->state = state;
  }
  source->jobs.reserve(source->jobs.size() + count);  // from here on nothing throws
  size_t added = 0;
  for (size_t i = 0; i < count; ++i) {
    added += SequencesOf(rows[i]);
    rows[i].taken_ns = now_ns;
    if (source->encoding) rows[i].encoded_ns = now_ns;
    source->jobs.push_back(std::move(rows[i]));
  }
  sequences_ += added;
  if (source->state == State::kEncoded) encoded_sequences_ += added;
  if (fresh.empty()) return sources_.end();
  if (state == State::kWaiting) ++waiting_;
  sources_.splice(sources_.end(), fresh);
  return source;
}

EncodeWork::Encoded EncodeWork::Take(size_t sequences, size_t narrow_rows) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (encoded_sequences_ == 0) return {};
  Encoded taken;
  taken.jobs.reserve(encoded_sequences_);
  taken.encodings.reserve(sources_.size());  // from here on nothing throws
  const auto takes = [&](const Job& job) {
    const size_t of_job = SequencesOf(job);
    if (sequences > 0) {
      sequences -= std::min(sequences, of_job);
      return true;
    }
    if (of_job > 1 || narrow_rows == 0) return IsCancelled(job);
    --narrow_rows;
    return true;
  };
  for (auto source = sources_.begin(); source != sources_.end();) {
    const auto at = source++;
    if (at->state != State::kEncoded) continue;
    auto kept = at->jobs.begin();
    for (Job& job : at->jobs) {
      if (takes(job)) {
        taken.jobs.push_back(std::move(job));
      } else if (&*kept++ != &job) {
        *(kept - 1) = std::move(job);
      }
    }
    if (kept == at->jobs.end()) continue;
    taken.encodings.push_back(at->encoding);
    at->jobs.erase(kept, at->jobs.end());
    if (at->jobs.empty()) sources_.erase(at);
  }
  const size_t of_taken = SequencesOf(taken.jobs);
  sequences_ -= of_taken;
  encoded_sequences_ -= of_taken;
  return taken;
}

LoopCounters EncodeWork::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

int EncodeWork::Next(size_t lanes, bool spare) const noexcept {
  return waiting_ == 0 || (running_ >= lanes && !spare) ? -1 : 0;
}

void EncodeWork::Claim(int /*task*/, size_t /*lanes*/) noexcept {
  --waiting_;
  ++running_;
}

// One source waits for each claimed task.
EncodeWork::Sources::iterator EncodeWork::TakeWaiting() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto source = std::find_if(sources_.begin(), sources_.end(),
                                   [](const Source& one) { return one.state == State::kWaiting; });
  source->state = State::kRunning;
  return source;
}

// None if all its clients have gone; else a copy, because other rows may join the source meanwhile.
std::optional<CheckedRow> EncodeWork::RowOf(Sources::iterator source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<Job>& jobs = source->jobs;
  if (std::all_of(jobs.begin(), jobs.end(), IsCancelled)) return std::nullopt;
  return jobs.front().row;
}

void EncodeWork::Encode(Begun source) noexcept {
  LoopCounters counters;
  std::shared_ptr<const void> encoding;
  try {
    if (const auto row = RowOf(source)) encoding = model_->Encode(*row, &counters);
  } catch (...) {  // the loop that takes the rows encodes again, and answers them
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t encoded_ns = encoding ? SteadyNow_ns() : 0;
    for (Job& job : source->jobs) job.encoded_ns = encoded_ns;
    source->encoding = std::move(encoding);
    source->state = State::kEncoded;
    encoded_sequences_ += SequencesOf(source->jobs);
    counters_ += counters;
  }
  ready_();
}

void EncodeWork::Run(int /*task*/) noexcept { Encode(TakeWaiting()); }

void EncodeWork::Release(int /*task*/) noexcept { --running_; }

}  // namespace ct2triton
