// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace ct2triton {

// What a row adds to the time of a step.
struct StepCost {
  double rows = 0;         // in rows of one token at the start of their outputs
  bool wide = false;       // its search has several sequences, now or later
  double* turn = nullptr;  // of the row, at first 0: heavy rows take part in this order
};

// Chooses the rows of a step, so that beam searches slow greedy ones down only up to a bound. Light
// rows always take part. Heavy rows alternate while light ones run: averaged over the steps,
// together they cost no more than the light rows, or than kLeast, and each costs as much as any
// other (start-time fair queueing). When a light row joins, a preceding step of only heavy rows
// counts too.
class StepBudget {
 public:
  // A row is heavy if it is wide or costs more than this. All costs are in rows of one token.
  static constexpr double kHeavy = 16;
  // A little more than the fixed cost of a step (packed int8 weights). With 10, greedy rows wait
  // longer beside small beams, which gain nothing (benchmarks/README.md).
  static constexpr double kLeast = 7;

  // costs: of the rows, whose turns it moves. Returns for each whether it takes part.
  std::vector<bool> Choose(const std::vector<StepCost>& costs);

 private:
  double credit_ = 0;  // of the heavy rows; negative after a step that cost more
  double now_ = 0;     // the turn of the last row that took it
};

}  // namespace ct2triton
