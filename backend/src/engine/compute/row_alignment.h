// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/alignment_heads.h"

namespace ct2triton {

// The source position that has most attention of each token of a row, as its decoder chooses the
// next one: by the mean of some heads; of equal positions, the first.
//
// It is kept by slot of the row's cache, as keys and values are. So beams of one origin share it,
// and what a step does again is written again.
class RowAlignment {
 public:
  // `first`, `count`: which of the encoded tokens are the row's own; at least one.
  RowAlignment(AlignmentHeads heads, size_t first, size_t count, size_t slots);

  const AlignmentHeads& heads() const { return heads_; }
  size_t first() const { return first_; }
  size_t count() const { return count_; }
  // The token in this slot has this attention, [all heads, encoded tokens].
  void Note(size_t slot, const float* weights, size_t encoded_tokens) noexcept;
  // A device has found it: the position among the row's own tokens.
  void Put(size_t slot, int64_t position) noexcept { positions_[slot] = position; }
  // In the source row; of a slot that was noted.
  int64_t PositionOf(size_t slot) const { return positions_[slot]; }

 private:
  const AlignmentHeads heads_;
  const size_t first_;
  const size_t count_;
  std::vector<int64_t> positions_;  // by slot
};

}  // namespace ct2triton
