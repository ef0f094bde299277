// SPDX-License-Identifier: Apache-2.0
#include "engine/products/choice.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace ct2triton::products {

void StartChoice(ChoiceLanes* lanes) {
  // The lowest number, not infinity: differences to it stay numbers.
  std::fill(std::begin(lanes->best), std::end(lanes->best), std::numeric_limits<float>::lowest());
  std::fill(std::begin(lanes->panel), std::end(lanes->panel), 0);
  std::fill(std::begin(lanes->sum), std::end(lanes->sum), 0.0f);
}

// Of equal logits the first output wins, as in a search from the first to the last.
Choice FinishChoice(const ChoiceLanes& lanes, int panel_outputs, bool log_totals) {
  Choice choice{panel_outputs * int64_t{lanes.panel[0]}, lanes.best[0], 0};
  for (int lane = 1; lane < panel_outputs; ++lane) {
    const int64_t output = panel_outputs * int64_t{lanes.panel[lane]} + lane;
    const float logit = lanes.best[lane];
    if (logit > choice.logit || (logit == choice.logit && output < choice.output)) {
      choice.output = output;
      choice.logit = logit;
    }
  }
  if (!log_totals) return choice;
  double total = 0;
  for (int lane = 0; lane < panel_outputs; ++lane) {
    total += lanes.sum[lane] * std::exp(double{lanes.best[lane]} - double{choice.logit});
  }
  choice.log_total = static_cast<float>(choice.logit + std::log(total));
  return choice;
}

}  // namespace ct2triton::products
