// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace ct2triton {

// What a step takes while so many loops of a model step at the same time. They share the memory's
// bandwidth, some of the caches, and hyperthreads their core.
struct StepTime {
  size_t loops = 1;
  double first_row_ns = 0;
  double further_row_ns = 0;
};

// From one loop to one on each thread. Empty: not known.
using StepTimes = std::vector<StepTime>;

}  // namespace ct2triton
