// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/step_budget.h"

#include <algorithm>

namespace ct2triton {

std::vector<bool> StepBudget::Choose(const std::vector<double>& costs) {
  std::vector<bool> chosen(costs.size(), true);
  std::vector<size_t> heavy;
  double light_cost = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] > kHeavy) {
      heavy.push_back(i);
    } else {
      light_cost += costs[i];
    }
  }
  if (heavy.empty() || heavy.size() == costs.size()) {  // nobody is slowed down
    credit_ = 0;
    return chosen;
  }
  const double budget = std::max(kLeast, light_cost);
  credit_ = std::min(credit_ + budget, budget);
  const size_t first = turn_ % heavy.size();
  for (size_t k = 0; k < heavy.size(); ++k) {
    const size_t i = heavy[(first + k) % heavy.size()];
    chosen[i] = credit_ > 0;
    if (!chosen[i]) continue;
    credit_ -= costs[i];
    ++turn_;
  }
  return chosen;
}

}  // namespace ct2triton
