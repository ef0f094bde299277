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
  for (const size_t i : heavy) *costs[i].turn = std::max(*costs[i].turn, now_);
  std::stable_sort(heavy.begin(), heavy.end(),
                   [&](size_t a, size_t b) { return *costs[a].turn < *costs[b].turn; });
  for (const size_t i : heavy) {
    chosen[i] = credit_ > 0;
    if (!chosen[i]) continue;
    credit_ -= costs[i].rows;
    now_ = *costs[i].turn;
    *costs[i].turn += costs[i].rows;
  }
  return chosen;
}

}  // namespace ct2triton
