// SPDX-License-Identifier: Apache-2.0
#include "queue/encode_work.h"

#include <algorithm>
#include <utility>

namespace ct2triton {
namespace {

size_t SequencesOf(const Job& job) { return static_cast<size_t>(job.row.copies); }

size_t SequencesOf(const std::vector<Job>& jobs) {
  size_t count = 0;
  for (const Job& job : jobs) count += SequencesOf(job);
  return count;
}

}  // namespace

EncodeWork::EncodeWork(std::shared_ptr<const LoopModel> model,
                         std::shared_ptr<Scheduler> scheduler, std::function<void()> ready,
                         const void* owner, size_t most_helpers)
    : model_(std::move(model)),
      scheduler_(std::move(scheduler)),
      ready_(std::move(ready)),
      most_helpers_(most_helpers) {
  scheduler_->Add(this, owner);
}

EncodeWork::~EncodeWork() { scheduler_->Drain(this); }

bool EncodeWork::Add(Job* job) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t added = SequencesOf(*job);
    auto source = std::find_if(sources_.begin(), sources_.end(), [job](const Source& known) {
      return known.rows.jobs.front().row.source == job->row.source;
    });
    Sources fresh;
    if (source == sources_.end()) source = fresh.emplace(fresh.end());
    source->rows.jobs.reserve(source->rows.jobs.size() + 1);
    source->rows.jobs.push_back(std::move(*job));  // from here on nothing throws
    sequences_ += added;
    if (source->state == State::kEncoded) encoded_sequences_ += added;
    waiting_ += fresh.size();
    sources_.splice(sources_.end(), fresh);
  } catch (...) {
    return false;
  }
  scheduler_->Wake(this);
  return true;
}

EncodeWork::Encoded EncodeWork::Take() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto source = std::find_if(sources_.begin(), sources_.end(),
                                   [](const Source& one) { return one.state == State::kEncoded; });
  if (source == sources_.end()) return {};
  Encoded taken = std::move(source->rows);
  sources_.erase(source);
  sequences_ -= SequencesOf(taken.jobs);
  encoded_sequences_ -= SequencesOf(taken.jobs);
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

// One source waits for the claimed task. Returns nothing if all its clients have gone, else a copy
// of the row, because other rows may join the source meanwhile.
std::optional<CheckedRow> EncodeWork::Start(Sources::iterator* source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  *source = std::find_if(sources_.begin(), sources_.end(),
                         [](const Source& one) { return one.state == State::kWaiting; });
  (*source)->state = State::kRunning;
  const std::vector<Job>& jobs = (*source)->rows.jobs;
  if (std::all_of(jobs.begin(), jobs.end(), IsCancelled)) return std::nullopt;
  return jobs.front().row;
}

void EncodeWork::Run(int /*task*/) noexcept {
  Sources::iterator source;
  LoopCounters counters;
  std::shared_ptr<const void> encoding;
  try {
    if (const auto row = Start(&source)) encoding = model_->Encode(*row, &counters);
  } catch (...) {  // the loop that takes the rows encodes again, and answers them
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    source->rows.encoding = std::move(encoding);
    source->state = State::kEncoded;
    encoded_sequences_ += SequencesOf(source->rows.jobs);
    counters_ += counters;
  }
  ready_();
}

void EncodeWork::Release(int /*task*/) noexcept { --running_; }

}  // namespace ct2triton
