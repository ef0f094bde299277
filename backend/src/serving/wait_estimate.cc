// SPDX-License-Identifier: Apache-2.0
#include "serving/wait_estimate.h"

#include <algorithm>

#include "steady_clock.h"

namespace ct2triton {
namespace {

constexpr double kMostRows = 256;  // at which all counts are halved
constexpr double kFewestRows = 32;

}  // namespace

void WaitEstimate::Count(size_t waiting, uint64_t queued_ns) noexcept {
  const uint64_t now_ns = SteadyNow_ns();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (last_ns_ != 0) {
    rows_ += 1;
    // At the earliest from its arrival: before, rows may have been withdrawn without a busy worker.
    busy_ns_ += static_cast<double>(now_ns - std::min(now_ns, std::max(last_ns_, queued_ns)));
  }
  last_ns_ = waiting > 0 ? now_ns : 0;
  if (rows_ < kMostRows) return;
  rows_ /= 2;
  busy_ns_ /= 2;
}

uint64_t WaitEstimate::Of_ns(size_t waiting) const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (rows_ < kFewestRows) return 0;
  return static_cast<uint64_t>(busy_ns_ / rows_ * static_cast<double>(waiting));
}

}  // namespace ct2triton
