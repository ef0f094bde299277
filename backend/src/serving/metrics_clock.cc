// SPDX-License-Identifier: Apache-2.0
#include "serving/metrics_clock.h"

#include <algorithm>
#include <chrono>

#include "triton/process_exit.h"

namespace ct2triton {
namespace {

constexpr std::chrono::milliseconds kPeriod(250);

}  // namespace

std::shared_ptr<MetricsClock> MetricsClock::OfProcess() {
  static std::mutex mutex;
  static std::weak_ptr<MetricsClock> running;
  const std::lock_guard<std::mutex> lock(mutex);
  auto clock = running.lock();
  if (!clock) running = clock = std::make_shared<MetricsClock>();
  return clock;
}

MetricsClock::MetricsClock() : thread_([this] { Run(); }) {}

MetricsClock::~MetricsClock() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  end_.notify_one();
  thread_.join();
}

void MetricsClock::Add(Publisher* publisher) {
  const std::lock_guard<std::mutex> lock(mutex_);
  publishers_.push_back(publisher);
}

void MetricsClock::Remove(Publisher* publisher) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  publishers_.erase(std::remove(publishers_.begin(), publishers_.end(), publisher),
                    publishers_.end());
}

void MetricsClock::Run() noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!end_.wait_for(lock, kPeriod, [this] { return ending_; })) {
    for (Publisher* publisher : publishers_) publisher->Publish();
    RenewExitHandler();
  }
}

}  // namespace ct2triton
