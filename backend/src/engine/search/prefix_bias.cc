// SPDX-License-Identifier: Apache-2.0
#include "engine/search/prefix_bias.h"

namespace ct2triton {

std::optional<int32_t> PrefixBias::Next(size_t step) const {
  if (step >= prefix_.size()) return std::nullopt;
  return prefix_[step];
}

PrefixBias::Diverged PrefixBias::After(size_t step, const Diverged& before,
                                       const std::vector<Candidate>& candidates) const {
  Diverged after = before;
  for (size_t k = 0; k < after.size(); ++k) {
    if (step >= prefix_.size() || candidates[k].output != prefix_[step]) after[k] = 1;
  }
  return after;
}

}  // namespace ct2triton
