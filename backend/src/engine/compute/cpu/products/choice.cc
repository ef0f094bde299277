// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/products/choice.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace ct2triton::products {

ChoiceState StartChoice(const ChoiceRules& rules) {
  ChoiceState state;
  // Not infinity, so that differences are never NaN.
  std::fill(std::begin(state.best), std::end(state.best), std::numeric_limits<float>::lowest());
  std::fill(std::begin(state.panel), std::end(state.panel), 0);
  std::fill(std::begin(state.sum), std::end(state.sum), 0.0f);
  state.keep_sum = rules.log_total;
  state.logits = rules.logits;
  state.forbidden = rules.forbidden.data();
  state.forbidden_end = state.forbidden + rules.forbidden.size();
  state.top = rules.top;
  state.wanted = rules.top == nullptr ? 0 : rules.wanted;
  state.found = 0;
  state.least = std::numeric_limits<float>::lowest();
  return state;
}

// Of equal logits the first output wins.
Choice FinishChoice(const ChoiceState& state, int panel_outputs) {
  Choice choice{panel_outputs * int64_t{state.panel[0]}, state.best[0], 0, state.found};
  for (int lane = 1; lane < panel_outputs; ++lane) {
    const int64_t output = panel_outputs * int64_t{state.panel[lane]} + lane;
    const float logit = state.best[lane];
    if (logit > choice.logit || (logit == choice.logit && output < choice.output)) {
      choice.output = output;
      choice.logit = logit;
    }
  }
  if (!state.keep_sum) return choice;
  double total = 0;
  for (int lane = 0; lane < panel_outputs; ++lane) {
    total += state.sum[lane] * std::exp(double{state.best[lane]} - double{choice.logit});
  }
  choice.log_total = static_cast<float>(choice.logit + std::log(total));
  return choice;
}

}  // namespace ct2triton::products
