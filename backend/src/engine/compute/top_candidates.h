// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/compute/cpu/products/kernel.h"

namespace ct2triton {

// A token that may continue a beam.
struct Candidate {
  float score = 0;
  size_t beam = 0;
  int32_t output = 0;
};

// Scores of a beam. A candidate's score is log_probability + score.
struct BeamScores {
  const float* log_probabilities;  // [outputs]
  float score;                     // of the beam so far
};

// A beam's best outputs, kept by the product with the vocabulary instead of its logits.
struct BestOutputs {
  const products::RankedOutput* top = nullptr;  // best first
  size_t count = 0;
  float log_total = 0;  // of all outputs: log-probability = logit - log_total
};

// The best `count` of all candidates, best first. Equal scores have the order of CTranslate2's
// ops::TopK (src/ops/topk_cpu.cc). It sorts the indices of all candidates partially with an
// unstable sort, so the order is found in the same way. `count` is at most the number of all
// candidates.
std::vector<Candidate> TopCandidates(const std::vector<BeamScores>& beams, size_t outputs,
                                     size_t count);

// Number of best outputs per beam that decide the best `count` candidates.
constexpr size_t OutputsToTell(size_t count) { return count + 1; }

// The same candidates from the best outputs alone. scores: of the beams so far. None if their order
// is undetermined: there are too few, one is NaN, or two are equal or so close that rounding
// decides.
std::optional<std::vector<Candidate>> TopOfBest(const std::vector<BestOutputs>& beams,
                                                const std::vector<float>& scores, size_t count);

}  // namespace ct2triton
