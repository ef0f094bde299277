// SPDX-License-Identifier: Apache-2.0
//
// How many waiting rows join a running loop before its next step. Pure functions.
#pragma once

#include <cstddef>

namespace ct2triton {

// Sequences are those of a step: each row has as many as its search.
struct LoopState {
  size_t rows = 0;              // in this loop
  size_t sequences = 0;         // of these
  size_t narrow_sequences = 0;  // of narrow rows: those with one sequence
  size_t all_sequences = 0;     // of all loops of the model
  size_t waiting_sequences = 0;
  size_t lanes = 1;         // loops among which the rows are divided
  double steps_waited = 0;  // how long the first waiting row has waited, in steps of this loop
  size_t steps_held = 0;    // steps for which waiting rows were held back
};

struct LoopSettings {
  size_t max_sequences = 64;                 // of a step
  size_t encode_tokens = 150;                // of sources and prefixes between two steps
  size_t max_cache_bytes = size_t{1} << 32;  // of keys and values of running rows
  size_t threads = 1;                        // that may compute one step, at most

  bool operator==(const LoopSettings& other) const;
};

// Sequences of waiting rows that may join now.
size_t SequencesToAdmit(const LoopState& state, const LoopSettings& settings);

// Whether waiting rows have room and are held back all the same, because few join: encoding several
// together costs less (benchmarks/dropped.md).
bool HoldsRows(const LoopState& state, const LoopSettings& settings);

// Rows of one sequence that may join although rows of several leave no room. A loop may then have
// more than `max_sequences`, but its steps stay below that, because wide rows alternate
// (StepBudget).
size_t RowsPastWide(const LoopState& state, const LoopSettings& settings);

}  // namespace ct2triton
