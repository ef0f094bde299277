// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/loop/step_time.h"

namespace ct2triton {

// How many loops should share the rows of a model. Each loop reads all weights at every step, so
// another loop helps only if it makes steps shorter: while the others have many rows, memory
// bandwidth is left, and its core would not help them more. Pure.
class LoopCount {
 public:
  // Cores that loops and threads that help them have, and threads that may compute a step.
  struct Help {
    size_t cores = 1;
    size_t threads = 1;  // 1: nobody helps
  };

  // `times`: of the model's steps on one thread each; empty: use `most` loops. `most`: limit on the
  // loops. `max_sequences`: of a step; For() returns enough loops for all rows.
  LoopCount(const StepTimes& times, size_t most, size_t max_sequences, const Help& help);

  size_t For(size_t rows) const noexcept;

 private:
  std::vector<size_t> least_rows_;  // [k]: fewest rows for which k + 1 loops pay; ascending
};

}  // namespace ct2triton
