// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/token_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ct2triton {
namespace {

// The log-probability under a bias of the output that it favors, and of every other output.
float BiasedTowards(float log_probability, float bias) {
  return std::log(std::exp(log_probability) * (1 - bias) + bias);
}

float BiasedAway(float log_probability, float bias) { return log_probability + std::log1p(-bias); }

// The bias lowers all other outputs equally, so only the best of them can win.
Choice PickBiased(const OutputRules& rules, const float* log_probabilities, int32_t best) {
  const int32_t favored = *rules.favored;
  Choice choice{favored, BiasedTowards(log_probabilities[favored], rules.bias)};
  const float other = BiasedAway(log_probabilities[best], rules.bias);
  const bool first_of_equals = other == choice.log_probability && best < favored;
  if (best != favored && (other > choice.log_probability || first_of_equals)) {
    choice = {best, other};
  }
  if (!rules.scored) choice.log_probability = 0;
  return choice;
}

// Once for each distinct output.
void Penalize(const Outputs& before, float penalty, float* logits) {
  Outputs seen = before;
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const int32_t output : seen) {
    float& logit = logits[output];
    logit = logit < 0 ? logit * penalty : logit / penalty;
  }
}

// Turns logits into the values that the choice is made from.
void ApplyRules(const OutputRules& rules, float* logits, size_t outputs, const RowKernel& kernel) {
  if (rules.penalty != 1) Penalize(*rules.before, rules.penalty, logits);
  for (const int64_t output : rules.forbidden) {
    logits[output] = std::numeric_limits<float>::lowest();  // as CTranslate2 does it
  }
  if (rules.scored || rules.favored || rules.candidates > 0)
    kernel.rows->log_softmax(logits, outputs);
}

Choice PickToken(const OutputRules& rules, const float* scores, size_t outputs,
                 const RowKernel& kernel) {
  const size_t place = rules.draw ? rules.draw->sampler.One(scores, outputs, rules.draw->step)
                                  : kernel.first_maximum(scores, outputs);
  const auto best = static_cast<int32_t>(place);
  if (rules.favored) return PickBiased(rules, scores, best);
  return {best, rules.scored ? scores[place] : 0};
}

// On all log-probabilities.
void ApplyBias(const OutputRules& rules, float* log_probabilities, size_t outputs) {
  if (!rules.favored) return;
  const float bias = rules.bias;
  const auto place = static_cast<size_t>(*rules.favored);
  if (rules.as_library) {
    for (size_t i = 0; i < outputs; ++i) {
      const float rest = std::exp(log_probabilities[i]) * (1 - bias);
      log_probabilities[i] = std::log(i == place ? rest + bias : rest);
    }
    return;
  }
  const float of_draft = BiasedTowards(log_probabilities[place], bias);
  const float less = BiasedAway(0, bias);
  for (size_t i = 0; i < outputs; ++i) log_probabilities[i] += less;
  log_probabilities[place] = of_draft;
}

}  // namespace

Found ChooseFrom(const OutputRules& rules, float* logits, size_t outputs, const RowKernel& kernel) {
  Found found;
  found.written = true;
  ApplyRules(rules, logits, outputs, kernel);
  const size_t sequences = rules.draw ? rules.draw->sequences : 0;
  for (size_t i = 0; i < sequences; ++i) {
    const size_t place = rules.draw->sampler.OfSequence(i).One(logits, outputs, rules.draw->step);
    found.candidates.push_back({rules.scored ? logits[place] : 0, i, static_cast<int32_t>(place)});
  }
  if (sequences == 0) found.choice = PickToken(rules, logits, outputs, kernel);
  return found;
}

std::optional<std::vector<Candidate>> ChooseJointly(const OutputRules* rules,
                                                    const OfferedOutput* offered, size_t outputs,
                                                    const RowKernel& kernel) {
  const OutputRules& first = *rules;
  if (offered->logits == nullptr) {
    std::vector<BestOutputs> best;
    std::vector<float> scores;
    for (size_t i = 0; i < first.sequences; ++i) {
      best.push_back(offered[i].best);
      scores.push_back(rules[i].score);
    }
    return TopOfBest(best, scores, first.candidates);
  }
  std::vector<BeamScores> beams;
  for (size_t i = 0; i < first.sequences; ++i) {
    ApplyRules(rules[i], offered[i].logits, outputs, kernel);
    ApplyBias(rules[i], offered[i].logits, outputs);
    beams.push_back({offered[i].logits, rules[i].score});
  }
  beams.resize(beams.size() + first.copies, {offered->logits, kPushedBack});
  return first.draw
             ? first.draw->sampler.Several(beams, outputs, first.candidates, first.draw->step)
             : TopCandidates(beams, outputs, first.candidates);
}

}  // namespace ct2triton
