// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/loop/decoder_model.h"
#include "engine/loop/float_buffer.h"
#include "engine/loop/greedy.h"
#include "engine/loop/packed_layers.h"
#include "engine/loop/wide_search.h"

namespace ct2triton {

// The product of a step with the vocabulary, and what each row chooses of it. Where the product can
// choose by itself, logits are written only for the rows that change them; of a beam that does not,
// the best outputs are kept. One thread's.
class Chooser {
 public:
  explicit Chooser(const DecoderModel& model) : model_(model) {}

  // seekers: one per row; hidden: [rows, width]; projection: one of the model's.
  std::vector<Found> Choose(const std::vector<Seeker>& seekers, const float* hidden,
                            const Linear& projection);

 private:
  // What a row wants of a product that can choose.
  struct Wants {
    bool logits = false;
    size_t top = 0;
  };

  std::vector<Found> ChooseInProduct(const std::vector<Seeker>& seekers, const float* hidden,
                                     const ChoosingLinear& projection);
  static Wants WantsOf(const Seeker& seeker);
  std::vector<products::ChoiceRules> RulesOf(const std::vector<Seeker>& seekers, size_t outputs);
  Choice GreedyChoice(const GreedySearch& search, float* logits, size_t outputs) const;

  const DecoderModel& model_;
  FloatBuffer logits_;
  std::vector<products::RankedOutput> top_;
};

}  // namespace ct2triton
