// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ct2triton {

// Nanoseconds of std::chrono::steady_clock, the clock of Triton's statistics.
uint64_t SteadyNow_ns();

}  // namespace ct2triton
