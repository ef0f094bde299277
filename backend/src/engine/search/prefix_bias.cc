// SPDX-License-Identifier: Apache-2.0
#include "engine/search/prefix_bias.h"

#include <algorithm>
#include <cmath>

namespace ct2triton {

bool PrefixBias::Acts(size_t step, const Diverged& diverged) const {
  return step < prefix_.size() && std::count(diverged.begin(), diverged.end(), 0) > 0;
}

void PrefixBias::Apply(size_t step, float* log_probabilities, size_t outputs) const {
  if (step >= prefix_.size()) return;
  const auto biased = static_cast<size_t>(prefix_[step]);
  for (size_t i = 0; i < outputs; ++i) {
    const float rest = std::exp(log_probabilities[i]) * (1 - beta_);
    log_probabilities[i] = std::log(i == biased ? rest + beta_ : rest);
  }
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
