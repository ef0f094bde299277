// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace ct2triton {

// What a row adds to the time of a step.
struct StepCost {
  double rows = 0;    // of one token, at the start of their answers
  bool wide = false;  // its search has several sequences, now or later
};

// How many tokens may run in a step beside one of each row: forced ones, and those of drafts, which
// may be wrong. For all rows together, since all rows wait for them. What does not fit waits for
// the next step, and changes no answer.
struct StepRoom {
  size_t forced;
  size_t drafts;
};

// Which rows take part in a step, so that searches with beams do not slow greedy ones down without
// bound. Light rows always do. Heavy rows alternate while light ones run: together they cost, over
// the steps, no more than the light ones do, or than kLeast. When a light row comes, a step that
// heavy ones had to themselves counts, too.
class StepBudget {
 public:
  // A row that is wide, or that costs more, is heavy. In rows of one token, as all costs here.
  static constexpr double kHeavy = 16;
  // Little more than what a step costs whatever its rows (packed int8 weights). Measured: with 10,
  // greedy rows wait longer beside small beams, which gain nothing (benchmarks/README.md).
  static constexpr double kLeast = 7;

  // costs: of the rows. Returns for each whether it takes part.
  std::vector<bool> Choose(const std::vector<StepCost>& costs);

 private:
  double credit_ = 0;  // of the heavy rows; below 0 after a step that cost more
  size_t turn_ = 0;    // number of the heavy row that is next
};

}  // namespace ct2triton
