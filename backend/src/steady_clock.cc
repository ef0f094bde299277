// SPDX-License-Identifier: Apache-2.0
#include "steady_clock.h"

#include <chrono>

namespace ct2triton {

uint64_t SteadyNow_ns() {
  const auto since_epoch = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count());
}

}  // namespace ct2triton
