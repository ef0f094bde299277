// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/decoding_options.h"
#include "engine/compute/top_candidates.h"

namespace ct2triton {

// Draws the tokens of one sequence, from the distribution that CTranslate2's RandomSampler draws
// from (src/sampling.cc): of the best `sampling_topk`, their scores divided by the temperature, the
// most probable ones whose probabilities add up to `sampling_topp`.
//
// Draws depend only on the key and the step. So a step may be repeated, and a row with a seed has
// the same answer in every batch.
class Sampler {
 public:
  Sampler(const DecodingOptions& options, uint64_t key);

  size_t topk() const { return topk_; }
  float topp() const { return topp_; }
  float temperature() const { return temperature_; }
  uint64_t key() const { return key_; }

  // The sampler of another sequence of the same row.
  Sampler OfSequence(size_t index) const;

  // scores: [outputs], logits or log-probabilities.
  size_t One(const float* scores, size_t outputs, size_t step) const;
  // `count` different ones, in the order drawn, with their scores as they were before the
  // temperature. As in CTranslate2, which adds noise to all scores and takes the best. The noise is
  // exponential (src/ops/gumbel_max_cpu.cc), not Gumbel's, so probable ones are drawn more often
  // than in separate draws.
  std::vector<Candidate> Several(const std::vector<BeamScores>& beams, size_t outputs, size_t count,
                                 size_t step) const;

 private:
  std::vector<float> Adjusted(std::vector<float> scores) const;
  void KeepMostProbable(std::vector<float>* scores) const;
  bool ChoosesAmongBest(size_t outputs) const { return topk_ > 0 && topk_ < outputs; }

  size_t topk_;  // 0: all
  float topp_;
  float temperature_;
  uint64_t key_;
};

}  // namespace ct2triton
