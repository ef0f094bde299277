// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/loop/decoder_model.h"
#include "engine/loop/float_buffer.h"
#include "engine/loop/row_alignment.h"
#include "engine/loop/source_encoder.h"

namespace ct2triton {

// What one row brings into a step: some next tokens, and what came before them.
struct StepRow {
  const int32_t* tokens;  // to be run now, at least one
  size_t count;
  size_t position;           // of the first of them: so many are in the cache already
  float* cache;              // [layers, keys and values apart, capacity, width]
  size_t capacity;           // tokens; at least position + count
  const Encoding* encoding;  // of its source
  size_t outputs;            // of the last tokens; 0: more forced ones follow, none is chosen yet
  // Where in the cache each token of the row lies, those to be run now too; null: in order.
  const int32_t* slots = nullptr;
  // The first tokens that CTranslate2 runs as a prompt, which it does in two ways of its own
  // (src/layers/decoder.cc and attention.cc). Where the first embedding is zero, those of the whole
  // prompt are. Where attention has a bias by distance, the prompt's distances are one less than
  // its length greater.
  size_t prompt = 0;
  RowAlignment* alignment = nullptr;  // hears where the tokens look; null: nobody asks

  // Of the token that is to be run as number `i`.
  size_t Slot(size_t i) const {
    return slots == nullptr ? position + i : static_cast<size_t>(slots[position + i]);
  }
};

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
