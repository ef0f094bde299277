// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/search/search_rules.h"
#include "engine/search/top_candidates.h"

namespace ct2triton {

// A bias of beams towards a prefix that is not forced (`prefix_bias_beta`), as CTranslate2's
// BiasedDecoder (src/decoding.cc): while a beam has not diverged from the prefix, beta of the
// probability of its next token is given to the one of the prefix.
//
// Whether a beam has diverged is noted by its rank, as CTranslate2 does it: a beam that takes over
// a rank takes over its flag, too, and a candidate that steps in for one that ended takes over the
// flag of that one. So a few beams are biased that should not be, or the other way round.
class PrefixBias {
 public:
  using Diverged = std::vector<char>;  // of each rank

  PrefixBias(Outputs prefix, float beta) : prefix_(std::move(prefix)), beta_(beta) {}

  // The output that gets the bias in a beam that has not diverged; -1: one that cannot be chosen;
  // none: after the end of the prefix. step: of the token, from 0.
  std::optional<int32_t> Next(size_t step) const;
  float beta() const { return beta_; }
  // The flags after a step that found these candidates, best first.
  Diverged After(size_t step, const Diverged& before,
                 const std::vector<Candidate>& candidates) const;

 private:
  Outputs prefix_;
  float beta_;
};

}  // namespace ct2triton
