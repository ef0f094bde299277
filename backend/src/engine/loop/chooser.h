// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/loop/decoder_model.h"
#include "engine/loop/float_buffer.h"
#include "engine/loop/greedy.h"
#include "engine/loop/packed_layers.h"

namespace ct2triton {

// The product of a step with the vocabulary, and what each row chooses of it. Where the product can
// choose by itself, logits are written only for the rows that change them. One thread's.
class Chooser {
 public:
  explicit Chooser(const DecoderModel& model) : model_(model) {}

  // searches: one per row, null for one that chooses by itself; hidden: [rows, width]; projection:
  // one of the model's.
  std::vector<Found> Choose(const std::vector<const GreedySearch*>& searches, const float* hidden,
                            const Linear& projection);

 private:
  std::vector<Found> ChooseInProduct(const std::vector<const GreedySearch*>& searches,
                                     const float* hidden, const ChoosingLinear& projection);
  Found FoundIn(const GreedySearch* search, float* logits, size_t outputs) const;

  const DecoderModel& model_;
  FloatBuffer logits_;
};

}  // namespace ct2triton
