// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/loop/step_time.h"

namespace ct2triton {

// How many loops should share the rows of a model. Each loop reads all weights at every step, so
// another one helps only where it makes the steps shorter: while the others have many rows and
// memory bandwidth is left. Pure.
class LoopCount {
 public:
  // `times`: of the model's steps; empty: as many loops as there may be are worth it. `most`: loops
  // that there may be. `max_sequences`: of a step; there are always loops enough for all.
  LoopCount(const StepTimes& times, size_t most, size_t max_sequences);

  size_t For(size_t rows) const noexcept;

 private:
  std::vector<size_t> least_rows_;  // for which one, two, ... loops are worth it; ascending
};

}  // namespace ct2triton
