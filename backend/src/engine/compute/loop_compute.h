// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/compute/step_row.h"
#include "engine/loop/source_encoder.h"
#include "engine/search/greedy.h"
#include "rows/checked_row.h"

namespace ct2triton {

// What a loop computes with: encoder, layers and attention of a decoder, and the choice of tokens.
// Holds room for intermediate results, so it is one thread's.
class LoopCompute {
 public:
  virtual ~LoopCompute() = default;

  // See SourceEncoder.
  virtual SourceEncoder::Encodings Encode(const std::vector<const CheckedRow*>& rows,
                                          LoopCaches* caches, SourceEncoder::Counts* counts) = 0;
  // No row is left: memory that rows of another kind may not need can go.
  virtual void Rest() noexcept {}

  // Runs tokens of many rows through the decoder at once, each row at its own position. Changes
  // keys and values from the rows' positions on, and nothing else: a step that failed can be run
  // again. Gives as many outputs as the rows ask for, in their order. Throws what the layers throw.
  virtual void Run(const std::vector<StepRow>& rows) = 0;

  // What is chosen of these outputs of the last Run, in their order, among the candidates of a
  // vocabulary map; null: of the whole vocabulary. seekers: one for each.
  virtual std::vector<Found> Choose(const std::vector<size_t>& outputs,
                                    const std::vector<Seeker>& seekers,
                                    const VocabularyMap* map) = 0;

  // Of all outputs of the last Run: [outputs, candidates].
  virtual std::vector<float> Logits(const VocabularyMap* map) = 0;
};

}  // namespace ct2triton
