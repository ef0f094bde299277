// SPDX-License-Identifier: Apache-2.0
#include "queue/long_sources.h"

#include <algorithm>
#include <utility>

namespace ct2triton {
namespace {

size_t StepRows(const Job& job) { return static_cast<size_t>(job.row.copies); }

size_t StepRows(const std::vector<Job>& jobs) {
  size_t rows = 0;
  for (const Job& job : jobs) rows += StepRows(job);
  return rows;
}

}  // namespace

LongSources::LongSources(std::shared_ptr<const LoopModel> model,
                         std::shared_ptr<Scheduler> scheduler, std::function<void()> ready,
                         const void* owner)
    : model_(std::move(model)), scheduler_(std::move(scheduler)), ready_(std::move(ready)) {
  scheduler_->Add(this, owner);
}

LongSources::~LongSources() { scheduler_->Drain(this); }

bool LongSources::Add(Job* job) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t step_rows = StepRows(*job);
    auto group = std::find_if(groups_.begin(), groups_.end(), [job](const Group& known) {
      return known.rows.jobs.front().row.source == job->row.source;
    });
    Groups fresh;
    if (group == groups_.end()) group = fresh.emplace(fresh.end());
    group->rows.jobs.reserve(group->rows.jobs.size() + 1);
    group->rows.jobs.push_back(std::move(*job));  // from here on nothing throws
    rows_ += step_rows;
    if (group->state == State::kEncoded) encoded_rows_ += step_rows;
    waiting_ += fresh.size();
    groups_.splice(groups_.end(), fresh);
  } catch (...) {
    return false;
  }
  scheduler_->Wake(this);
  return true;
}

LongSources::Encoded LongSources::Take() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto group = std::find_if(groups_.begin(), groups_.end(),
                                  [](const Group& one) { return one.state == State::kEncoded; });
  if (group == groups_.end()) return {};
  Encoded taken = std::move(group->rows);
  groups_.erase(group);
  rows_ -= StepRows(taken.jobs);
  encoded_rows_ -= StepRows(taken.jobs);
  return taken;
}

LoopCounters LongSources::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

int LongSources::Next(size_t lanes, bool spare) const noexcept {
  return waiting_ == 0 || (running_ >= lanes && !spare) ? -1 : 0;
}

void LongSources::Claim(int /*piece*/, size_t /*lanes*/) noexcept {
  --waiting_;
  ++running_;
}

// A group was claimed, so one waits. Nothing where its clients have gone. The row is a copy, since
// others may join the group.
std::optional<CheckedRow> LongSources::Start(Groups::iterator* group) {
  const std::lock_guard<std::mutex> lock(mutex_);
  *group = std::find_if(groups_.begin(), groups_.end(),
                        [](const Group& one) { return one.state == State::kWaiting; });
  (*group)->state = State::kRunning;
  const std::vector<Job>& jobs = (*group)->rows.jobs;
  if (std::all_of(jobs.begin(), jobs.end(), IsCancelled)) return std::nullopt;
  return jobs.front().row;
}

void LongSources::Run(int /*piece*/) noexcept {
  Groups::iterator group;
  LoopCounters counters;
  std::shared_ptr<const void> encoding;
  try {
    if (const auto row = Start(&group)) encoding = model_->Encode(*row, &counters);
  } catch (...) {  // the loop that takes the rows tries it again, and answers them
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    group->rows.encoding = std::move(encoding);
    group->state = State::kEncoded;
    encoded_rows_ += StepRows(group->rows.jobs);
    counters_ += counters;
  }
  ready_();
}

void LongSources::Release(int /*piece*/) noexcept { --running_; }

}  // namespace ct2triton
