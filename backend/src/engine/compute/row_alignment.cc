// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/row_alignment.h"

#include <utility>

namespace ct2triton {

RowAlignment::RowAlignment(AlignmentHeads heads, size_t first, size_t count, size_t slots)
    : heads_(std::move(heads)), first_(first), count_(count), positions_(slots, 0) {}

void RowAlignment::Note(size_t slot, const float* weights, size_t encoded_tokens) noexcept {
  float most = -1;  // less than any weight
  for (size_t i = 0; i < count_; ++i) {
    float sum = 0;
    for (const size_t head : heads_.heads) sum += weights[head * encoded_tokens + first_ + i];
    if (sum <= most) continue;
    most = sum;
    positions_[slot] = static_cast<int64_t>(i);
  }
}

}  // namespace ct2triton
