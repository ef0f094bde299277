// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/compute/cpu/products/kernel.h"

namespace ct2triton {

// A token that a beam may go on with.
struct Candidate {
  float score = 0;
  size_t beam = 0;
  int32_t output = 0;
};

// What a beam brings: the score of each of its candidates is the sum.
struct BeamScores {
  const float* log_probabilities;  // [outputs]
  float score;                     // of the beam so far
};

// What the product with the vocabulary keeps of a beam instead of its logits.
struct BestOutputs {
  const products::RankedOutput* top = nullptr;  // best first
  size_t count = 0;
  float log_total = 0;  // of all outputs: a log-probability is the difference to it
};

// The best `count` of all candidates, best first. Equal scores come in the order in which
// CTranslate2's ops::TopK has them (src/ops/topk_cpu.cc): it sorts the places of all candidates in
// part, with a method that keeps no order among equals, so that order is found in the same way.
// `count` is at most the number of all candidates.
std::vector<Candidate> TopCandidates(const std::vector<BeamScores>& beams, size_t outputs,
                                     size_t count);

// So many of the best outputs of each beam decide the best `count` candidates.
constexpr size_t OutputsToTell(size_t count) { return count + 1; }

// The same candidates from the best outputs alone. scores: of the beams so far. None where that
// leaves their order open: where there are too few, one is no number, or two are equal or so near
// that rounding decides.
std::optional<std::vector<Candidate>> TopOfBest(const std::vector<BestOutputs>& beams,
                                                const std::vector<float>& scores, size_t count);

}  // namespace ct2triton
