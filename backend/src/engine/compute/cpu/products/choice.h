// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compute/cpu/products/kernel.h"

namespace ct2triton::products {

// What a row wants of the product with the vocabulary.
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
  float log_total = 0;  // log of the sum of exp(logit), if asked for: its score is the difference
  int32_t found = 0;    // of the best outputs; fewer than wanted where there are no more
};

// What a kernel's `choose` begins with. Keeps pointers into `rules`.
ChoiceState StartChoice(const ChoiceRules& rules);

// The choice of a row from its lanes, of which a panel has `panel_outputs`.
Choice FinishChoice(const ChoiceState& state, int panel_outputs);

}  // namespace ct2triton::products
