// SPDX-License-Identifier: Apache-2.0
#include "queue/loop_lane.h"

#include <new>
#include <utility>

#include "error.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

LoopLoad LoadOf(const CheckedRow& row) {
  const auto step_rows = static_cast<size_t>(row.copies);
  return step_rows == 1 ? LoopLoad{1, 0, 0} : LoopLoad{step_rows, step_rows, row.cache_bytes};
}

}  // namespace

void LoopLoad::Add(const LoopLoad& other) {
  step_rows += other.step_rows;
  wide_step_rows += other.wide_step_rows;
  wide_cache_bytes += other.wide_cache_bytes;
}

void LoopLoad::Remove(const LoopLoad& other) {
  step_rows -= other.step_rows;
  wide_step_rows -= other.wide_step_rows;
  wide_cache_bytes -= other.wide_cache_bytes;
}

std::vector<Job> LoopLane::Turn(std::vector<Job> admitted) noexcept {
  DropCancelled();
  step_failure_.reset();
  admission_failure_.reset();
  std::vector<Job> failed = Join(std::move(admitted));
  if (!failed.empty() && running() == 0) step_failure_ = admission_failure_;
  try {
    if (running() > 0) loop_->Step(this);
  } catch (const std::bad_alloc&) {
    TakeAll(&failed);
  } catch (...) {
    step_failure_ = CurrentError();
    TakeAll(&failed);  // it may have been any of them: each will show alone
  }
  return failed;
}

// Jobs that cannot be admitted together are admitted one by one: those that run are none the worse
// for it. Returns those that cannot be admitted.
std::vector<Job> LoopLane::Join(std::vector<Job> jobs) noexcept {
  if (jobs.empty() || TryAdmit(&jobs) || jobs.size() == 1) return jobs;
  auto failed = jobs.begin();
  for (Job& job : jobs) {
    if (TryAdmitAlone(&job)) continue;
    if (&*failed != &job) *failed = std::move(job);
    ++failed;
  }
  jobs.erase(failed, jobs.end());
  return jobs;
}

// Leaves no job where it succeeds, else all.
bool LoopLane::TryAdmit(std::vector<Job>* jobs) noexcept {
  try {
    Admit(jobs);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  } catch (...) {
    admission_failure_ = CurrentError();
    return false;
  }
}

bool LoopLane::TryAdmitAlone(Job* job) noexcept {
  try {
    std::vector<Job> alone(1);
    alone.front() = std::move(*job);
    if (TryAdmit(&alone)) return true;
    *job = std::move(alone.front());
  } catch (const std::bad_alloc&) {
  }
  return false;
}

// An exception leaves the jobs with the caller.
void LoopLane::Admit(std::vector<Job>* admitted) {
  places_.reserve(places_.size() + admitted->size());
  const auto group = groups_.emplace(groups_.end());
  group->jobs.swap(*admitted);
  std::vector<LoopRow> names;
  try {
    group->call.emplace(&group->jobs, /*padded=*/false);
    if (group->jobs.empty()) {  // all had been cancelled
      groups_.erase(group);
      return;
    }
    group->call->times()->compute_start_ns = SteadyNow_ns();
    names = loop_->Admit(group->call->rows());
    group->call->times()->encoded_ns = SteadyNow_ns();
    for (size_t i = 0; i < names.size(); ++i) {
      const LoopLoad load = LoadOf(*group->call->rows()[i]);
      places_.emplace(names[i], Place{group, i, load});
      load_.Add(load);
    }
    group->running = names.size();
  } catch (...) {
    for (const LoopRow name : names) {
      loop_->Remove(name);
      const auto place = places_.find(name);
      if (place == places_.end()) continue;
      load_.Remove(place->second.load);
      places_.erase(place);
    }
    admitted->swap(group->jobs);
    groups_.erase(group);
    throw;
  }
}

void LoopLane::DropCancelled() noexcept {
  for (auto it = places_.begin(); it != places_.end();) {
    const auto place = it++;
    const auto& [group, position, load] = place->second;
    if (!group->call->Cancelled(position)) continue;
    loop_->Remove(place->first);
    group->call->FailRow(position, CancelledWhileRunning());
    Leave(place);
  }
}

void LoopLane::RowGrew(LoopRow row, int64_t id) noexcept {
  const Place& place = places_.find(row)->second;
  place.group->call->RowGrew(place.position, id);
}

void LoopLane::RowEnded(LoopRow row, RowResult result) noexcept {
  const auto place = places_.find(row);
  place->second.group->call->RowEnded(place->second.position, std::move(result));
  Leave(place);
}

void LoopLane::Leave(std::unordered_map<LoopRow, Place>::iterator place) noexcept {
  const auto group = place->second.group;
  load_.Remove(place->second.load);
  places_.erase(place);
  if (--group->running == 0) groups_.erase(group);
}

void LoopLane::TakeAll(std::vector<Job>* to) noexcept {
  for (const auto& [row, place] : places_) loop_->Remove(row);
  places_.clear();
  load_ = LoopLoad();
  for (Group& group : groups_) {
    group.call->KeepUnanswered();
    for (Job& job : group.jobs) {
      try {
        to->push_back(std::move(job));
      } catch (...) {
        FailJob(&job, OutOfMemory());
      }
    }
  }
  groups_.clear();
}

}  // namespace ct2triton
