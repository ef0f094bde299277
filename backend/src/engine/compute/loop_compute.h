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

  // See SourceEncoder.
  virtual SourceEncoder::Encodings Encode(const std::vector<const CheckedRow*>& rows,
                                          LoopCaches* caches, SourceEncoder::Counts* counts) = 0;
  // Work since the last call.
  virtual GpuWork TakeWork() noexcept { return {}; }
  // Call when no row is left: frees memory that other kinds of rows may not need.
  virtual void Rest() noexcept {}

  // Cache for the keys and values of a row, for up to `slots` tokens in all its sequences.
  virtual std::unique_ptr<RowCache> NewCache(const CheckedRow& row, size_t slots) = 0;

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
