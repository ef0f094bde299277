// SPDX-License-Identifier: Apache-2.0
#include "queue/call_work.h"

#include <algorithm>
#include <new>
#include <utility>

#include "error.h"
#include "queue/run_call.h"

namespace ct2triton {

bool WorkSettings::operator==(const WorkSettings& other) const {
  return inter_threads == other.inter_threads && intra_threads == other.intra_threads &&
         calls_idle_ns == other.calls_idle_ns && bounds.max_rows == other.bounds.max_rows &&
         bounds.max_tokens == other.bounds.max_tokens &&
         bounds.max_search_tokens == other.bounds.max_search_tokens;
}

CallWork::CallWork(std::shared_ptr<CallModel> model, const WorkSettings& settings,
                   std::shared_ptr<Scheduler> scheduler, const void* owner)
    : model_(std::move(model)),
      settings_(settings),
      scheduler_(std::move(scheduler)),
      queue_([this] {
        if (queue_.size() > 0) model_->Fetch();
        scheduler_->Wake(this);
      }),
      lanes_(settings.inter_threads) {
  for (size_t lane = lanes_.size(); lane-- > 0;) free_.push_back(static_cast<int>(lane));
  model_->Add(this);
  try {
    scheduler_->Add(this, owner);
  } catch (...) {
    model_->Remove(this);
    throw;
  }
}

CallWork::~CallWork() {
  queue_.Close();
  scheduler_->Drain(this);
  model_->Remove(this);
}

void CallWork::RunAlone(std::vector<Job> jobs) noexcept {
  for (Job& job : jobs) {
    try {
      const std::lock_guard<std::mutex> lock(alone_mutex_);
      alone_.push_back(std::move(job));
      alone_jobs_ = alone_.size();
    } catch (...) {
      FailJob(&job, OutOfMemory());
    }
  }
  model_->Fetch();
  scheduler_->Wake(this);
}

// Takes at most one job. Without memory, it stays in the queue.
std::vector<Job> CallWork::TakeAlone() noexcept {
  std::vector<Job> taken;
  try {
    taken.reserve(1);
  } catch (const std::bad_alloc&) {
    return taken;
  }
  const std::lock_guard<std::mutex> lock(alone_mutex_);
  if (alone_.empty()) return taken;
  taken.push_back(std::move(alone_.front()));
  alone_.pop_front();
  alone_jobs_ = alone_.size();
  return taken;
}

void CallWork::ModelFailed(const Error& error) noexcept {
  while (queue_.size() > 0) queue_.FailFirst(error);
  while (alone_jobs_ > 0) {  // one by one, because another deque would need memory
    std::unique_lock<std::mutex> lock(alone_mutex_);
    if (alone_.empty()) break;
    Job job = std::move(alone_.front());
    alone_.pop_front();
    alone_jobs_ = alone_.size();
    lock.unlock();
    FailJob(&job, error);
  }
  scheduler_->Wake(this);
}

int CallWork::Next(size_t lanes, bool spare) const noexcept {
  if (waiting() == 0 || !model_->here() || free_.empty()) return -1;
  return busy() >= lanes && !spare ? -1 : free_.back();
}

void CallWork::Claim(int task, size_t lanes) noexcept {
  lanes_[static_cast<size_t>(task)].lanes = std::min(lanes_.size(), std::max(lanes, busy() + 1));
  free_.pop_back();
}

std::shared_ptr<CallEngine> CallWork::EngineOf(Lane* lane) {
  if (!scheduler_->OnGpu()) return model_->TakeEngine(settings_.calls_idle_ns);
  if (!lane->engine) lane->engine = model_->NewEngine();
  return lane->engine;
}

void CallWork::Run(int task) noexcept {
  Lane& lane = lanes_[static_cast<size_t>(task)];
  try {
    const auto engine = EngineOf(&lane);
    if (!engine) return model_->Fetch();  // the model has just been removed
    auto alone = TakeAlone();
    auto jobs = alone.empty() ? queue_.TakeCall(settings_.bounds, lane.lanes) : std::move(alone);
    RunCall(engine.get(), &queue_, std::move(jobs));
  } catch (...) {  // no memory to choose rows: fails one row, so the queue gets shorter
    auto alone = TakeAlone();
    if (alone.empty()) return queue_.FailFirst(CurrentError());
    FailJob(&alone.front(), CurrentError());
  }
}

void CallWork::Release(int task) noexcept { free_.push_back(task); }

}  // namespace ct2triton
