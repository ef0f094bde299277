// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/products/kernel.h"

namespace ct2triton::products {

// A row's greedy choice among the outputs of a layer.
struct Choice {
  int64_t output = 0;   // the first that has the largest logit
  float logit = 0;      // its logit
  float log_total = 0;  // log of the sum of exp(logit), if asked for: its score is the difference
};

// What a kernel's `choose` begins with.
void StartChoice(ChoiceLanes* lanes);

// The choice of a row from its lanes, of which a panel has `panel_outputs`.
Choice FinishChoice(const ChoiceLanes& lanes, int panel_outputs, bool log_totals);

}  // namespace ct2triton::products
