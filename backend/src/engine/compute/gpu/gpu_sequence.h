// SPDX-License-Identifier: Apache-2.0
// The private parts of GpuDecoder.
#pragma once

#include "engine/compute/gpu/gpu_decoder.h"

namespace ct2triton::gpu {

struct GpuEncoded {
  GpuEncoded(Slots* slots, size_t of_tokens) : pages(slots), tokens(of_tokens) {
    pages.Reserve(tokens);
  }

  Pages pages;
  const size_t tokens;
};

struct GpuSequence {
  std::shared_ptr<GpuEncoded> encoded;
  std::shared_ptr<Pages> cache;
  TokenRules rules;
  std::optional<Rule> rule;  // as the device has it
  std::vector<int> listed;   // ends and forbidden outputs, which the rule refers to
  size_t in_order = 0;       // number of first table entries that are in the order of the cache
  size_t prompt = 0;
};

struct GpuOutputs {
  static constexpr size_t kMostGroups = 8;
  // wanted: most outputs of a step. logits_stride: outputs of the projection, padded.
  GpuOutputs(const Gpu& gpu, const ModelWeights& weights, size_t wanted, size_t rows,
             const GpuLimits& limits);

  size_t capacity;  // padding included
  size_t stride;    // logits of an output
  size_t parts;
  Buffer<int> rows, part_output, heads;
  Buffer<float> logits, part_value, part_most, part_total, part_drawn, source_weights;
  Buffer<Chosen> chosen;
  Buffer<Candidate> candidates;
};

class GpuStep {
 public:
  GpuStep(const Gpu& gpu, const GpuOutputs& outputs)
      : chosen(gpu, outputs.chosen.count()),
        candidates(gpu, outputs.candidates.count()),
        done(gpu) {}

  Arrivals<Chosen> chosen;
  Arrivals<Candidate> candidates;
  Event done;  // set once they are copied
  std::vector<OutputPlace> places;
};

}  // namespace ct2triton::gpu
