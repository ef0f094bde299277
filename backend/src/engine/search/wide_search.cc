// SPDX-License-Identifier: Apache-2.0
#include "engine/search/wide_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace ct2triton {
namespace {

// NaN scores would break the sort.
float Sortable(float score) {
  return std::isnan(score) ? std::numeric_limits<float>::lowest() : score;
}

}  // namespace

size_t SlotsFor(size_t beams, size_t forced, size_t limit) {
  const size_t shared = std::min(1 + forced, limit);
  return shared + beams * (limit - shared);
}

Ids PositionsOf(const AlignedSlots& aligned, const int32_t* slots, size_t outputs) {
  Ids positions;
  if (aligned.alignment == nullptr) return positions;
  positions.reserve(outputs);
  for (size_t i = 0; i < outputs; ++i) {
    const size_t slot = slots == nullptr ? i : static_cast<size_t>(slots[i]);
    positions.push_back(aligned.alignment->PositionOf(aligned.first + slot));
  }
  return positions;
}

std::vector<WideSearch::Hypothesis> BestFirst(std::vector<WideSearch::Hypothesis> finished,
                                              const SearchRules& rules, size_t wanted) {
  for (auto& hypothesis : finished) {
    hypothesis.score = Sortable(rules.Normalized(hypothesis.score, hypothesis.outputs.size()));
  }
  std::vector<size_t> order(finished.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&finished](size_t a, size_t b) { return finished[a].score > finished[b].score; });
  order.resize(std::min(wanted, order.size()));
  std::vector<WideSearch::Hypothesis> best;
  for (const size_t i : order) best.push_back(std::move(finished[i]));
  return best;
}

}  // namespace ct2triton
