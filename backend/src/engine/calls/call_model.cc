// SPDX-License-Identifier: Apache-2.0
#include "engine/calls/call_model.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/calls/shared_library_model.h"
#include "engine/calls/thread_scope.h"
#include "engine/model/weights.h"
#include "engine/shared_by_key.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

// How long a loaded model waits for the first call of the rows that needed it.
constexpr uint64_t kFirstCall_ns = 10'000'000'000;

}  // namespace

std::shared_ptr<CallModel> CallModel::Get(const std::shared_ptr<const Weights>& weights,
                                          size_t threads) {
  static SharedByKey<const Weights*, CallModel> known;
  return known.Get(weights.get(), [&] { return std::make_shared<CallModel>(weights, threads); });
}

CallModel::CallModel(std::shared_ptr<const Weights> weights, size_t threads)
    : weights_(std::move(weights)), threads_(threads) {}

CallModel::~CallModel() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CallModel::Add(Listener* listener) {
  const std::lock_guard<std::mutex> lock(listeners_mutex_);
  listeners_.insert(listener);
}

void CallModel::Remove(Listener* listener) noexcept {
  const std::lock_guard<std::mutex> lock(listeners_mutex_);
  listeners_.erase(listener);
}

template <class Action>
void CallModel::Notify(const Action& action) noexcept {
  const std::lock_guard<std::mutex> lock(listeners_mutex_);
  for (Listener* listener : listeners_) action(listener);
}

void CallModel::Keep() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_ = kept_ || model_ != nullptr;
    if (kept_) return;
  }
  auto model = Load();  // without the lock, for which decode loops of these weights may wait
  const size_t bytes = model->Bytes(weights_->names());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!model_) {
    model_ = std::move(model);
    bytes_ = bytes;
  }
  kept_ = true;
  here_ = true;
}

void CallModel::Fetch() noexcept {
  if (here_) return;
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (here_ || wanted_) return;
    if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
    wanted_ = true;
    changed_.notify_all();
    return;
  } catch (const std::exception&) {  // no thread can be started
  }
  Notify([](Listener* listener) { listener->ModelFailed(OutOfMemory()); });
}

std::shared_ptr<const LibraryModel> CallModel::Load() const {
  std::shared_ptr<const LibraryModel> model;
  CallLibrary::Get();  // before the scope, which prepares a thread for the library
  RunInThreadScope(weights_->device(), threads_, [&] {
    model = LibraryOf(*weights_);
    const auto& map = weights_->vocabulary_map();
    model->Try(map ? &*map : nullptr, weights_->end_id());
  });
  return model;
}

void CallModel::Work() noexcept {
  Lock lock(mutex_);
  while (!ending_) {
    const uint64_t now_ns = SteadyNow_ns();
    if (wanted_) {
      LoadUnlocked(&lock);
    } else if (!model_ || kept_ || taken_ > 0) {
      changed_.wait(lock);
    } else if (now_ns < stays_until_ns_) {
      changed_.wait_for(lock, std::chrono::nanoseconds(stays_until_ns_ - now_ns));
    } else {
      RemoveUnlocked(&lock);
    }
  }
}

void CallModel::LoadUnlocked(Lock* lock) noexcept {
  std::shared_ptr<const LibraryModel> model;
  std::optional<Error> failure;
  size_t bytes = 0;
  lock->unlock();
  try {
    model = Load();
    bytes = model->Bytes(weights_->names());
  } catch (...) {
    failure = CurrentError();
  }
  lock->lock();
  wanted_ = false;
  if (!failure && !kept_) {
    model_ = std::move(model);
    bytes_ = bytes;
    ++loads_;
    stays_until_ns_ = SteadyNow_ns() + kFirstCall_ns;
    awaits_call_ = true;
    here_ = true;
  }
  lock->unlock();
  Notify([&failure](Listener* listener) {
    failure ? listener->ModelFailed(*failure) : listener->ModelCame();
  });
  lock->lock();
}

void CallModel::RemoveUnlocked(Lock* lock) noexcept {
  here_ = false;
  bytes_ = 0;
  auto engines = std::exchange(engines_, {});
  auto model = std::exchange(model_, nullptr);
  lock->unlock();
  engines.clear();
  model.reset();
  Notify([](Listener* listener) { listener->ModelLeft(); });
  lock->lock();
}

std::shared_ptr<CallEngine> CallModel::TakeEngine(uint64_t stay_ns) {
  Lock lock(mutex_);
  if (!here_) return nullptr;
  std::unique_ptr<CallEngine> engine;
  if (engines_.empty()) {
    engine = model_->NewEngine();
  } else {
    engine = std::move(engines_.back());
    engines_.pop_back();
  }
  engines_.reserve(engines_.size() + taken_ + 1);  // so that returning the engine allocates nothing
  ++taken_;
  if (std::exchange(awaits_call_, false)) stays_until_ns_ = 0;  // from now on calls set it
  lock.unlock();  // GiveBack takes it if there is no memory for the result
  return {engine.release(), [this, stay_ns](CallEngine* taken) { GiveBack(taken, stay_ns); }};
}

void CallModel::GiveBack(CallEngine* engine, uint64_t stay_ns) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    engines_.emplace_back(engine);
    --taken_;
    stays_until_ns_ = std::max(stays_until_ns_, SteadyNow_ns() + stay_ns);
  }
  changed_.notify_all();
}

std::unique_ptr<CallEngine> CallModel::NewEngine() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return model_->NewEngine();
}

}  // namespace ct2triton
