// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/compute/row_alignment.h"
#include "engine/loop/shared_encodings.h"

namespace ct2triton {

// The keys and values of one row, in the form of the device that made it; it forgets them with this
// object. A row that takes no part in a step keeps them.
class RowCache {
 public:
  RowCache() = default;
  virtual ~RowCache() = default;
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;
};

// What one row brings into a step: some next tokens, and what came before them.
struct StepSequence {
  const int32_t* tokens;  // to be run now, at least one
  size_t count;
  size_t position;  // of the first of them: so many are in the cache already
  RowCache* cache;
  const Encoding* encoding;  // of its source
  size_t outputs;            // of the last tokens; 0: more forced ones follow, none is chosen yet
  // Where in the cache each token of the row lies, those to be run now too; null: in order.
  const int32_t* slots = nullptr;
  // The first tokens that CTranslate2 runs as a prompt, which it does in two ways of its own
  // (src/layers/decoder.cc and attention.cc). Where the first embedding is zero, those of the whole
  // prompt are. Where attention has a bias by distance, the prompt's distances are one less than
  // its length greater.
  size_t prompt = 0;
  RowAlignment* alignment = nullptr;  // gets the attention; null: not wanted
  uint64_t row = 0;                   // its name, for devices that keep keys and values themselves

  // Of the token that is to be run as number `i`.
  size_t Slot(size_t i) const {
    return slots == nullptr ? position + i : static_cast<size_t>(slots[position + i]);
  }
};

}  // namespace ct2triton
