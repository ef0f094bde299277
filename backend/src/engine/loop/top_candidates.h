// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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

// The best `count` of all candidates, best first. Equal scores come in the order in which
// CTranslate2's ops::TopK has them (src/ops/topk_cpu.cc): it sorts the places of all candidates in
// part, with a method that keeps no order among equals, so that order is found in the same way.
// `count` is at most the number of all candidates.
std::vector<Candidate> TopCandidates(const std::vector<BeamScores>& beams, size_t outputs,
                                     size_t count);

}  // namespace ct2triton
