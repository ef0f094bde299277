// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/compute/cpu/decoder_model.h"
#include "engine/compute/cpu/float_buffer.h"
#include "engine/compute/step_row.h"

namespace ct2triton {

// Runs tokens of many rows through a decoder at once, each row at its own position: the products
// take all tokens together, attention goes row by row. Holds room for intermediate results, so it
// is one thread's.
class DecoderStep {
 public:
  explicit DecoderStep(const DecoderModel& model) : model_(model) {}

  // Writes the tokens' keys and values into the caches, from `position` on, and nothing else of the
  // rows: a step that failed can be run again. Returns what the projection takes, [outputs of all
  // rows, width], in their order; valid until the next call. Throws what the layers throw.
  const float* Run(const std::vector<StepRow>& rows);

 private:
  void Embed(const std::vector<StepRow>& rows);
  void RunLayer(size_t index, const std::vector<StepRow>& rows);
  void AttendToSelf(size_t index, const std::vector<StepRow>& rows);
  void AttendToSource(size_t index, const std::vector<StepRow>& rows);
  // out = layers.out(context) + residual, between the norms.
  void FinishAttention(const AttentionLayers& layers, const float* residual, float* out);
  const float* Normalized(const Norm& norm, const float* in);
  const float* Output(const std::vector<StepRow>& rows);

  const DecoderModel& model_;
  size_t tokens_ = 0;  // of this step
  FloatBuffer hidden_, between_, normalized_, projected_, context_, inner_, gate_, scores_;
};

}  // namespace ct2triton
