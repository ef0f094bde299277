// SPDX-License-Identifier: Apache-2.0
#include "queue/running_loop.h"

#include <new>
#include <utility>

#include "error.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

LoopLoad LoadOf(const CheckedRow& row) {
  const auto sequences = static_cast<size_t>(row.copies);
  return sequences == 1 ? LoopLoad{1, 0, 0} : LoopLoad{sequences, sequences, row.cache_bytes};
}

}  // namespace

void LoopLoad::Add(const LoopLoad& other) {
  sequences += other.sequences;
  wide_sequences += other.wide_sequences;
  wide_cache_bytes += other.wide_cache_bytes;
}

void LoopLoad::Remove(const LoopLoad& other) {
  sequences -= other.sequences;
  wide_sequences -= other.wide_sequences;
  wide_cache_bytes -= other.wide_cache_bytes;
}

std::vector<Job> RunningLoop::Admit(std::vector<Job> jobs) noexcept {
  DropCancelled();
  step_failure_.reset();
  admission_failure_.reset();
  lacked_memory_ = true;
  std::vector<Job> failed = Join(std::move(jobs));
  if (!failed.empty() && running() == 0) step_failure_ = admission_failure_;
  return failed;
}

void RunningLoop::Step(std::vector<Job>* failed) noexcept {
  try {
    if (running() > 0) loop_->Step(this);
  } catch (const std::bad_alloc&) {
    TakeAll(failed);
  } catch (...) {
    step_failure_ = FailureOfLoop();
    TakeAll(failed);  // any of them may have caused it: each runs again alone
  }
}

// What is thrown now; none: memory of the GPU is short for a while.
std::optional<Error> RunningLoop::FailureOfLoop() noexcept {
  const Error error = CurrentError();
  if (error.code() == ErrorCode::kUnavailable) return std::nullopt;
  lacked_memory_ = false;
  return error;
}

// Jobs that cannot be admitted together are admitted one by one; running jobs are not affected.
// Returns those that cannot be admitted.
std::vector<Job> RunningLoop::Join(std::vector<Job> jobs) noexcept {
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

// On success `jobs` is empty, else unchanged.
bool RunningLoop::TryAdmit(std::vector<Job>* jobs) noexcept {
  try {
    AdmitAll(jobs);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  } catch (...) {
    admission_failure_ = FailureOfLoop();
    return false;
  }
}

bool RunningLoop::TryAdmitAlone(Job* job) noexcept {
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
void RunningLoop::AdmitAll(std::vector<Job>* admitted) {
  places_.reserve(places_.size() + admitted->size());
  const auto admission = admissions_.emplace(admissions_.end());
  admission->jobs.swap(*admitted);
  std::vector<LoopRow> names;
  try {
    admission->rows.emplace(&admission->jobs, /*padded=*/false);
    if (admission->jobs.empty()) {  // all had been cancelled
      admissions_.erase(admission);
      return;
    }
    admission->rows->times()->compute_start_ns = SteadyNow_ns();
    names = loop_->Admit(admission->rows->rows());
    admission->rows->times()->encoded_ns = SteadyNow_ns();
    for (size_t i = 0; i < names.size(); ++i) {
      const LoopLoad load = LoadOf(*admission->rows->rows()[i]);
      places_.emplace(names[i], Place{admission, i, load});
      load_.Add(load);
    }
    admission->running = names.size();
  } catch (...) {
    for (const LoopRow name : names) {
      loop_->Remove(name);
      const auto place = places_.find(name);
      if (place == places_.end()) continue;
      load_.Remove(place->second.load);
      places_.erase(place);
    }
    admitted->swap(admission->jobs);
    admissions_.erase(admission);
    throw;
  }
}

void RunningLoop::DropCancelled() noexcept {
  for (auto it = places_.begin(); it != places_.end();) {
    const auto place = it++;
    const auto& [admission, position, load] = place->second;
    if (!admission->rows->Cancelled(position)) continue;
    loop_->Remove(place->first);
    admission->rows->FailRow(position, CancelledWhileRunning());
    Leave(place);
  }
}

void RunningLoop::RowGrew(LoopRow row, int64_t id) noexcept {
  const Place& place = places_.find(row)->second;
  place.admission->rows->RowGrew(place.position, id);
}

void RunningLoop::RowEnded(LoopRow row, RowResult result) noexcept {
  const auto place = places_.find(row);
  place->second.admission->rows->RowEnded(place->second.position, std::move(result));
  Leave(place);
}

void RunningLoop::Leave(std::unordered_map<LoopRow, Place>::iterator place) noexcept {
  const auto admission = place->second.admission;
  load_.Remove(place->second.load);
  places_.erase(place);
  if (--admission->running == 0) admissions_.erase(admission);
}

void RunningLoop::TakeAll(std::vector<Job>* to) noexcept {
  for (const auto& [row, place] : places_) loop_->Remove(row);
  places_.clear();
  load_ = LoopLoad();
  for (Admission& admission : admissions_) {
    admission.rows->KeepUnanswered();
    for (Job& job : admission.jobs) {
      try {
        to->push_back(std::move(job));
      } catch (...) {
        FailJob(&job, OutOfMemory());
      }
    }
  }
  admissions_.clear();
}

}  // namespace ct2triton
