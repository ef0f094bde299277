// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace ct2triton {

// Which rows take part in a step, so that a row of 32 beams does not slow a greedy one down without
// bound. Light rows always do. Heavy rows take turns while light ones run: together they cost, over
// the steps, no more than the light ones do, or than kLeast.
class StepBudget {
 public:
  // A row that costs more is heavy. In rows of one token, as all costs here.
  static constexpr double kHeavy = 16;
  // About twice what a step costs whatever its rows (measured with packed int8 weights).
  static constexpr double kLeast = 10;

  // costs: of the rows. Returns for each whether it takes part.
  std::vector<bool> Choose(const std::vector<double>& costs);

 private:
  double credit_ = 0;  // of the heavy rows; below 0 after a step that cost more
  size_t turn_ = 0;    // of the heavy row that goes first
};

}  // namespace ct2triton
