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
                   std::shared_ptr<Scheduler> scheduler)
    : weights_(std::move(weights)),
      settings_(settings),
      scheduler_(std::move(scheduler)),
      queue_([this] { scheduler_->Wake(); }),
      lanes_(settings.workers) {
  if (!scheduler_->OnGpu()) {  // what fails, fails the load
    lanes_.front().engine = std::make_unique<CallEngine>(weights_);
  }
  scheduler_->Add(this);
}

CallWork::~CallWork() {
  queue_.Close();
  scheduler_->Drain(this);
}

int CallWork::Claim(size_t lanes, bool spare) noexcept {
  if (queue_.size() == 0) return -1;
  const auto busy = static_cast<size_t>(
      std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.busy; }));
  if (busy >= lanes && !spare) return -1;
  const auto free =
      std::find_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return !lane.busy; });
  if (free == lanes_.end()) return -1;
  free->busy = true;
  free->lanes = std::min(lanes_.size(), std::max(lanes, busy + 1));
  return static_cast<int>(free - lanes_.begin());
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

void CallWork::Release(int piece) noexcept { lanes_[static_cast<size_t>(piece)].busy = false; }

bool CallWork::Active() const noexcept {
  return queue_.size() > 0 ||
         std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.busy; });
}

}  // namespace ct2triton
