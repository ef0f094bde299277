// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compute/cpu/products/kernel.h"

namespace ct2triton::products {

// The results that a row needs from the product with the vocabulary.
struct ChoiceRules {
  bool log_total = false;          // for scores
  float* logits = nullptr;         // where to write [outputs] logits as well, null for nowhere
  std::vector<int64_t> forbidden;  // outputs not to choose, ascending; they are in no total either,
                                   // but their logits are written as they are
  RankedOutput* top = nullptr;     // where to write the best `wanted` outputs, best first; of equal
                                   // ones the first output; null for nowhere
  int32_t wanted = 0;
};

// A row's greedy choice among the outputs of a layer.
struct Choice {
  int64_t output = 0;   // the first that has the largest logit
  float logit = 0;      // its logit
  float log_total = 0;  // log of the sum of exp(logit), if requested; score = logit - log_total
  int32_t found = 0;    // number of best outputs; may be fewer than wanted
};

// Initial state for a kernel's `choose`. Keeps pointers into `rules`.
ChoiceState StartChoice(const ChoiceRules& rules);

// The choice of a row from its `panel_outputs` lanes.
Choice FinishChoice(const ChoiceState& state, int panel_outputs);

}  // namespace ct2triton::products
