// SPDX-License-Identifier: Apache-2.0
#include "triton/in_flight.h"

namespace ct2triton {

void InFlight::Add() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++count_;
}

void InFlight::Done() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--count_ == 0) none_.notify_all();
}

void InFlight::WaitUntilNone() {
  std::unique_lock<std::mutex> lock(mutex_);
  none_.wait(lock, [this] { return count_ == 0; });
}

}  // namespace ct2triton
