// SPDX-License-Identifier: Apache-2.0
#include "queue/admission.h"

#include <algorithm>

namespace ct2triton {
namespace {

constexpr size_t kMostHeld = 4;         // sequences that are worth waiting for
constexpr size_t kRowsPerHeld = 6;      // running rows for each of them
constexpr double kMostStepsWaited = 1;  // by the first row, while others may arrive
constexpr size_t kMostStepsHeld = 3;    // while a full loop has places for some of the rows
constexpr size_t kPartForNarrow = 4;  // 1 / part of a step's sequences that is kept for narrow rows

// Sequences worth holding rows back for. It counts rows, because a few searches of many beams are
// no reason to wait: their steps are long.
size_t WorthHolding(const LoopState& state) {
  return std::min(kMostHeld, state.rows / kRowsPerHeld);
}

// Number of rows that this loop should take so that all lanes have about equally many. It takes a
// few more rather than leave them waiting for another loop.
size_t Room(const LoopState& state, const LoopSettings& settings) {
  const size_t all = state.waiting_sequences + state.all_sequences;
  const size_t share = (all + state.lanes - 1) / state.lanes + WorthHolding(state);
  const size_t most = std::min(settings.max_sequences, share);
  return std::min(state.waiting_sequences, most - std::min(most, state.sequences));
}

}  // namespace

bool LoopSettings::operator==(const LoopSettings& other) const {
  return max_sequences == other.max_sequences && encode_tokens == other.encode_tokens &&
         max_cache_bytes == other.max_cache_bytes && threads == other.threads;
}

size_t SequencesToAdmit(const LoopState& state, const LoopSettings& settings) {
  return HoldsRows(state, settings) ? 0 : Room(state, settings);
}

bool HoldsRows(const LoopState& state, const LoopSettings& settings) {
  const size_t room = Room(state, settings);
  if (room == 0 || room >= WorthHolding(state)) return false;
  const size_t places = settings.max_sequences - state.sequences;  // at least `room`
  return places < state.waiting_sequences ? state.steps_held < kMostStepsHeld
                                          : state.steps_waited < kMostStepsWaited;
}

size_t RowsPastWide(const LoopState& state, const LoopSettings& settings) {
  const size_t kept = std::max<size_t>(1, settings.max_sequences / kPartForNarrow);
  return kept - std::min(kept, state.narrow_sequences);
}

}  // namespace ct2triton
