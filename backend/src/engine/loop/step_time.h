// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace ct2triton {

// Time of a step while `loops` loops of a model step at the same time. They share the memory
// bandwidth and some caches, and hyperthreads share their core.
struct StepTime {
  size_t loops = 1;
  double first_row_ns = 0;
  double further_row_ns = 0;
};

// Rows of the longer steps that are measured: those of a tile, which our kernels multiply at a
// time.
constexpr size_t kMeasuredRows = 12;

// From one loop to one on each thread. Empty: unknown.
using StepTimes = std::vector<StepTime>;

}  // namespace ct2triton
