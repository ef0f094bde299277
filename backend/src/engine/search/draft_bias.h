// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "engine/search/search_rules.h"

namespace ct2triton {

// A bias of a search towards a draft (`draft_bias` b): while the tokens of a sequence after the
// forced ones equal the draft's, the draft's next token gets the probability (1 - b) p + b, and all
// others (1 - b) p. The bias stops where the draft ends or where the output first differs from it.
// Scores are of these probabilities.
//
// It is applied after all rules: a forbidden token gets no bias, so the sequence differs there.
class DraftBias {
 public:
  // draft: -1 for a token that cannot be chosen. forced: number of outputs before it.
  DraftBias(Outputs draft, size_t forced, float bias)
      : draft_(std::move(draft)), forced_(forced), bias_(bias) {}

  // The draft's output after `before`, which includes forced outputs; none: no bias.
  std::optional<int32_t> Next(const Outputs& before, const SearchRules& rules) const;
  float bias() const { return bias_; }

 private:
  Outputs draft_;
  size_t forced_;
  float bias_;
};

}  // namespace ct2triton
