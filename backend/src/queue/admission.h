// SPDX-License-Identifier: Apache-2.0
//
// How many waiting rows join a running loop before its next step. Pure functions.
#pragma once

#include <cstddef>

namespace ct2triton {

// Rows are those of a step: each beam counts. But where it says so.
struct LoopState {
  size_t searches = 0;     // rows in this loop, however many beams they have
  size_t running = 0;      // rows in this loop
  size_t narrow = 0;       // of these: of searches that have one sequence
  size_t running_all = 0;  // in all loops of the model
  size_t waiting = 0;
  size_t lanes = 1;       // loops among which the rows are divided
  size_t steps_held = 0;  // steps for which waiting rows were kept for company
};

struct LoopSettings {
  size_t max_rows = 64;                      // of a step
  size_t encode_tokens = 150;                // of sources and prefixes between two steps
  size_t max_cache_bytes = size_t{1} << 32;  // of keys and values of running rows

  bool operator==(const LoopSettings& other) const;
};

// Rows that may join now. Rows wait for company while few have room: encoding some together costs
// less than each alone (benchmarks/README.md), but no longer than some steps.
size_t RowsToAdmit(const LoopState& state, const LoopSettings& settings);

// Rows of one sequence that may join although rows of several leave no room. So a loop may run some
// more rows than `max_rows`; its steps stay below that, since wide rows then take turns
// (StepBudget).
size_t RowsPastWide(const LoopState& state, const LoopSettings& settings);

// Waiting rows have room, but not enough company yet.
bool HoldsRows(const LoopState& state, const LoopSettings& settings);

}  // namespace ct2triton
