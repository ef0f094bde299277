// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace ct2triton {

// Nanoseconds of std::chrono::steady_clock, the clock of Triton's statistics.
inline uint64_t SteadyNow_ns() {
  const auto since_epoch = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count());
}

}  // namespace ct2triton
