// SPDX-License-Identifier: Apache-2.0
#include "queue/call_work.h"

#include <algorithm>
#include <utility>

#include "error.h"
#include "queue/run_call.h"

namespace ct2triton {

bool PoolSettings::operator==(const PoolSettings& other) const {
  return workers == other.workers && threads_per_worker == other.threads_per_worker &&
         bounds.max_rows == other.bounds.max_rows && bounds.max_tokens == other.bounds.max_tokens &&
         bounds.max_search_tokens == other.bounds.max_search_tokens;
}

CallWork::CallWork(std::shared_ptr<const Weights> weights, const PoolSettings& settings,
                   std::shared_ptr<Scheduler> scheduler, const void* model)
    : weights_(std::move(weights)),
      settings_(settings),
      scheduler_(std::move(scheduler)),
      queue_([this] { scheduler_->Wake(this); }),
      lanes_(settings.workers) {
  for (size_t lane = lanes_.size(); lane-- > 0;) free_.push_back(static_cast<int>(lane));
  if (!scheduler_->OnGpu()) {  // what fails, fails the load
    lanes_.front().engine = std::make_unique<CallEngine>(weights_);
  }
  scheduler_->Add(this, model);
}

CallWork::~CallWork() {
  queue_.Close();
  scheduler_->Drain(this);
}

int CallWork::Next(size_t lanes, bool spare) const noexcept {
  if (queue_.size() == 0 || free_.empty() || (busy() >= lanes && !spare)) return -1;
  return free_.back();
}

void CallWork::Claim(int piece, size_t lanes) noexcept {
  lanes_[static_cast<size_t>(piece)].lanes = std::min(lanes_.size(), std::max(lanes, busy() + 1));
  free_.pop_back();
}

void CallWork::Run(int piece) noexcept {
  Lane& lane = lanes_[static_cast<size_t>(piece)];
  try {
    if (!lane.engine) lane.engine = std::make_unique<CallEngine>(weights_);
    RunCall(lane.engine.get(), &queue_, queue_.TakeCall(settings_.bounds, lane.lanes));
  } catch (...) {  // no memory to choose rows: the queue becomes one row shorter
    queue_.FailFirst(CurrentError());
  }
}

void CallWork::Release(int piece) noexcept { free_.push_back(piece); }

bool CallWork::Active() const noexcept { return queue_.size() > 0 || busy() > 0; }

}  // namespace ct2triton
