// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/compute/step_sequence.h"
#include "engine/loop/source_encoder.h"
#include "engine/search/token_choice.h"
#include "rows/checked_row.h"

namespace ct2triton {

// What a GPU did for a loop: see LoopCounters.
struct GpuWork {
  uint64_t passes = 0;
  uint64_t passes_ahead = 0;
  uint64_t host_choices = 0;
};

// What a loop computes with: encoder, layers and attention of a decoder, and the choice of tokens.
// Holds room for intermediate results, so it is one thread's.
class LoopCompute {
 public:
  virtual ~LoopCompute() = default;

  // See SourceEncoder.
  virtual SourceEncoder::Encodings Encode(const std::vector<const CheckedRow*>& rows,
                                          LoopCaches* caches, SourceEncoder::Counts* counts) = 0;
  // Of the steps since the last call.
  virtual GpuWork TakeWork() noexcept { return {}; }
  // No row is left: memory that rows of another kind may not need can go.
  virtual void Rest() noexcept {}

  // For the keys and values of a row, of up to `slots` tokens in all its sequences.
  virtual std::unique_ptr<RowCache> NewCache(const CheckedRow& row, size_t slots) = 0;

  // Runs tokens of many rows through the decoder at once, each row at its own position, and chooses
  // what follows the outputs that the rows ask for; rules: of each output, in order. Changes keys
  // and values from the rows' positions on, and nothing else: a step that failed can be run again.
  // Throws what the layers throw. A device may give a row what the next step of the same row finds,
  // and run ahead: see Found::later.
  virtual std::vector<Found> Step(const std::vector<StepSequence>& rows,
                                  const std::vector<OutputRules>& rules) = 0;

  // For a trial: runs a step and gives the logits of each output, and then those of the first one
  // among the candidates of each map.
  virtual std::vector<std::vector<float>> Logits(const std::vector<StepSequence>& rows,
                                                 const std::vector<const VocabularyMap*>& maps) = 0;
};

}  // namespace ct2triton
