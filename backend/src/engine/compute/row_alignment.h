// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rows/alignment_heads.h"

namespace ct2triton {

// For each token of a row, the source position with most attention when the next token is chosen:
// by the mean of some heads; of equal positions, the first.
//
// It is stored by slot of the row's cache, like keys and values. So beams of one origin share it,
// and a repeated step overwrites it.
class RowAlignment {
 public:
  // `first`, `count`: the row's own tokens among the encoded ones; at least one.
  RowAlignment(AlignmentHeads heads, size_t first, size_t count, size_t slots)
      : heads_(std::move(heads)), first_(first), count_(count), positions_(slots, 0) {}

  const AlignmentHeads& heads() const { return heads_; }
  size_t first() const { return first_; }
  size_t count() const { return count_; }
  // Stores the position for the token in this slot: among the row's own tokens.
  void Put(size_t slot, int64_t position) noexcept { positions_[slot] = position; }
  // Position in the source row; the slot must have been stored.
  int64_t PositionOf(size_t slot) const { return positions_[slot]; }

 private:
  const AlignmentHeads heads_;
  const size_t first_;
  const size_t count_;
  std::vector<int64_t> positions_;  // by slot
};

}  // namespace ct2triton
