// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "engine/search/search_rules.h"

namespace ct2triton {

// A search leans towards a draft (`draft_bias` b): while a sequence has followed the draft behind
// its forced tokens, b of the probability of its next token is given to the draft's: p becomes
// (1 - b) p + b, and (1 - b) p for all others. Behind the draft's end, and once the sequence has
// left it, nothing is changed. Scores are of these probabilities.
//
// It acts behind all rules. A token that they forbid gets nothing, and the sequence leaves the
// draft there: what must not be chosen is never chosen.
class DraftBias {
 public:
  // draft: -1 for a token that cannot be chosen. forced: outputs that stand before it.
  DraftBias(Outputs draft, size_t forced, float bias)
      : draft_(std::move(draft)), forced_(forced), bias_(bias) {}

  // The draft's output behind these, forced ones among them; none where there is no bias.
  std::optional<int32_t> Next(const Outputs& before, const SearchRules& rules) const;
  float bias() const { return bias_; }

 private:
  Outputs draft_;
  size_t forced_;
  float bias_;
};

}  // namespace ct2triton
