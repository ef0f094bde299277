// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace ct2triton {

// Tells whether idle threads help with a model's steps, of which not much is seen where other
// models or programs use the cores. Then it says no for a while, longer each time: rows that have
// more loops for want of help leave no core idle that would show the contrary. Thread-safe.
class HelpWatch {
 public:
  // After each step that an idle core could have helped with.
  void Count(bool helped, uint64_t now_ns) noexcept;
  // Yes from the start on, until too few steps had help. Takes no lock.
  bool Helps(uint64_t now_ns) const noexcept { return now_ns >= again_ns_; }

 private:
  std::mutex mutex_;
  double part_ = 1;                    // of the last steps that had help, on average
  uint64_t pause_ns_ = 0;              // how long it last said no
  std::atomic<uint64_t> again_ns_{0};  // until when
};

}  // namespace ct2triton
