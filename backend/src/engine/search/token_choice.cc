// SPDX-License-Identifier: Apache-2.0
#include "engine/search/token_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ct2triton {
namespace {

// The bias lessens all others alike, so that only the best of them may win.
Choice PickBiased(const OutputRules& rules, const float* log_probabilities, int32_t best) {
  const int32_t leaning = *rules.leaning;
  Choice choice{leaning, LeantTo(log_probabilities[leaning], rules.bias)};
  const float other = LeantFrom(log_probabilities[best], rules.bias);
  const bool first_of_equals = other == choice.log_probability && best < leaning;
  if (best != leaning && (other > choice.log_probability || first_of_equals)) {
    choice = {best, other};
  }
  if (!rules.scored) choice.log_probability = 0;
  return choice;
}

}  // namespace

float LeantTo(float log_probability, float bias) {
  return std::log(std::exp(log_probability) * (1 - bias) + bias);
}

float LeantFrom(float log_probability, float bias) { return log_probability + std::log1p(-bias); }

void Penalize(const Outputs& before, float penalty, float* logits) {
  Outputs seen = before;
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const int32_t output : seen) {
    float& logit = logits[output];
    logit = logit < 0 ? logit * penalty : logit / penalty;
  }
}

void ApplyRules(const OutputRules& rules, float* logits, size_t outputs, const Kernels& kernels) {
  if (rules.penalty != 1) Penalize(*rules.before, rules.penalty, logits);
  for (const int64_t output : rules.forbidden) {
    logits[output] = std::numeric_limits<float>::lowest();  // as CTranslate2 does it
  }
  if (rules.scored || rules.leaning) kernels.rows->log_softmax(logits, outputs);
}

Choice PickToken(const OutputRules& rules, const float* scores, size_t outputs,
                 const Kernels& kernels) {
  const size_t place = rules.draw ? rules.draw->sampler.One(scores, outputs, rules.draw->step)
                                  : kernels.first_maximum(scores, outputs);
  const auto best = static_cast<int32_t>(place);
  if (rules.leaning) return PickBiased(rules, scores, best);
  return {best, rules.scored ? scores[place] : 0};
}

}  // namespace ct2triton
