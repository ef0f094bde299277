// SPDX-License-Identifier: Apache-2.0
//
// Lets a test stop a worker thread at a chosen point and release it later.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace ct2triton {

class Gate {
 public:
  explicit Gate(size_t held_at) : held_at_(held_at) {}

  // Called on a worker thread. `asked`: how often it has already checked for cancellation. Blocks
  // at `held_at` checks until Open.
  void Pass(size_t asked) {
    if (asked != held_at_) return;
    std::unique_lock<std::mutex> lock(mutex_);
    reached_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void WaitUntilReached() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return reached_; });
  }
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  const size_t held_at_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  bool open_ = false;
};

}  // namespace ct2triton
