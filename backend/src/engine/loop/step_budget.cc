// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/step_budget.h"

#include <algorithm>

namespace ct2triton {

std::vector<bool> StepBudget::Choose(const std::vector<StepCost>& costs) {
  std::vector<bool> chosen(costs.size(), true);
  std::vector<size_t> heavy;
  double light_cost = 0;
  double heavy_cost = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    const bool is_heavy = costs[i].wide || costs[i].rows > kHeavy;
    if (is_heavy) heavy.push_back(i);
    (is_heavy ? heavy_cost : light_cost) += costs[i].rows;
  }
  if (heavy.empty() || heavy.size() == costs.size()) {  // no row is slowed down
    credit_ = -heavy_cost;
    return chosen;
  }
  const double budget = std::max(kLeast, light_cost);
  credit_ = std::min(credit_ + budget, budget);
  const size_t first = next_heavy_ % heavy.size();
  for (size_t k = 0; k < heavy.size(); ++k) {
    const size_t i = heavy[(first + k) % heavy.size()];
    chosen[i] = credit_ > 0;
    if (!chosen[i]) continue;
    credit_ -= costs[i].rows;
    ++next_heavy_;
  }
  return chosen;
}

}  // namespace ct2triton
