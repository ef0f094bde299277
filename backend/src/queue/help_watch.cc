// SPDX-License-Identifier: Apache-2.0
#include "queue/help_watch.h"

#include <algorithm>

namespace ct2triton {
namespace {

constexpr double kWeight = 1.0 / 64;  // of the last step in the average
constexpr double kLeast = 0.25;       // idle threads also encode, and help with other steps
constexpr uint64_t kShortestPause_ns = 1'000'000'000;
constexpr uint64_t kLongestPause_ns = 32'000'000'000;

}  // namespace

void HelpWatch::Count(bool helped, uint64_t now_ns) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!Helps(now_ns)) return;
  part_ += kWeight * ((helped ? 1 : 0) - part_);
  if (part_ >= kLeast) return;
  const bool soon = now_ns < again_ns_ + pause_ns_;  // after the last pause
  pause_ns_ = soon ? std::min(2 * pause_ns_, kLongestPause_ns) : kShortestPause_ns;
  again_ns_ = now_ns + pause_ns_;
  part_ = 1;
}

}  // namespace ct2triton
