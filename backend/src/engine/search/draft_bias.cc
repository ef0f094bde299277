// SPDX-License-Identifier: Apache-2.0
#include "engine/search/draft_bias.h"

#include <algorithm>

namespace ct2triton {

std::optional<int32_t> DraftBias::Next(const Outputs& before, const SearchRules& rules) const {
  const size_t followed = before.size() - forced_;
  if (followed >= draft_.size() || draft_[followed] < 0) return std::nullopt;
  const auto free = before.begin() + static_cast<std::ptrdiff_t>(forced_);
  if (!std::equal(free, before.end(), draft_.begin())) return std::nullopt;
  const int32_t next = draft_[followed];
  const auto forbidden = rules.Disabled(before);
  if (std::binary_search(forbidden.begin(), forbidden.end(), next)) return std::nullopt;
  return next;
}

void DraftBias::Apply(const Outputs& before, const SearchRules& rules, float* log_probabilities,
                      size_t outputs) const {
  const auto next = Next(before, rules);
  if (!next) return;
  const auto place = static_cast<size_t>(*next);
  const float of_draft = LeantTo(log_probabilities[place], bias_);
  const float less = LeantFrom(0, bias_);
  for (size_t i = 0; i < outputs; ++i) log_probabilities[i] += less;
  log_probabilities[place] = of_draft;
}

}  // namespace ct2triton
