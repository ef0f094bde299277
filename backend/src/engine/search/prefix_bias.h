// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/compute/top_candidates.h"
#include "engine/search/search_rules.h"

namespace ct2triton {

// A bias of beams towards a prefix that is not forced (`prefix_bias_beta`), as CTranslate2's
// BiasedDecoder (src/decoding.cc): while a beam has not diverged from the prefix, a share beta of
// its next token's probability goes to the prefix's token.
//
// Whether a beam has diverged is noted by its rank, as in CTranslate2: a beam that takes over a
// rank also takes over its flag, and a candidate that replaces an ended one takes over that one's
// flag. So a few beams are biased that should not be, and a few are not that should be.
class PrefixBias {
 public:
  using Diverged = std::vector<char>;  // of each rank

  PrefixBias(Outputs prefix, float beta) : prefix_(std::move(prefix)), beta_(beta) {}

  // The output that gets the bias in a beam that has not diverged; -1: a token that cannot be
  // chosen; none: the prefix has ended. step: index of the token.
  std::optional<int32_t> Next(size_t step) const;
  float beta() const { return beta_; }
  // The flags after a step with these candidates, best first.
  Diverged After(size_t step, const Diverged& before,
                 const std::vector<Candidate>& candidates) const;

 private:
  Outputs prefix_;
  float beta_;
};

}  // namespace ct2triton
