// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/compute/step_sequence.h"
#include "engine/compute/token_choice.h"

namespace ct2triton {

// Work of a GPU for a loop, see LoopCounters.
struct GpuWork {
  uint64_t passes = 0;
  uint64_t passes_ahead = 0;
  uint64_t host_choices = 0;
};

// Computes for one loop: encoder, layers and attention of a decoder, and the choice of tokens. Not
// thread-safe, because it holds intermediate results.
class LoopCompute {
 public:
  virtual ~LoopCompute() = default;

  // Encodes sources, given as IDs of the encoder, at most DeviceModel::encoded_together() at once.
  // An encoding does not depend on the other sources.
  virtual std::vector<std::unique_ptr<EncodedSource>> Encode(
      const std::vector<std::vector<size_t>>& sources) = 0;
  // Work since the last call.
  virtual GpuWork TakeWork() noexcept { return {}; }
  // Call when no row is left: frees memory that other kinds of rows may not need.
  virtual void Rest() noexcept {}

  // Cache for the keys and values of a row: up to `slots` tokens in all its sequences, and up to
  // `limit` in each.
  virtual std::unique_ptr<RowCache> NewCache(size_t slots, size_t limit) = 0;

  // Runs tokens of many rows through the decoder at once, each row at its own position, and chooses
  // the next token of each requested output; rules: of each output, in order. Changes only keys and
  // values from the rows' positions on, so a failed step can be run again. Throws what the layers
  // throw. A device may run ahead and return a row's results one step later, see Found::later.
  virtual std::vector<Found> Step(const std::vector<StepSequence>& rows,
                                  const std::vector<OutputRules>& rules) = 0;

  // For a trial: runs a step and returns the logits of each output, and then those of the first
  // output for the candidates of each map.
  virtual std::vector<std::vector<float>> Logits(const std::vector<StepSequence>& rows,
                                                 const std::vector<const VocabularyMap*>& maps) = 0;
};

}  // namespace ct2triton
