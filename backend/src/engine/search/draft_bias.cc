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

}  // namespace ct2triton
