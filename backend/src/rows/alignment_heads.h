// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace ct2triton {

// The heads whose attention to the source determines alignments.
struct AlignmentHeads {
  size_t layer = 0;
  std::vector<size_t> heads;  // of this layer; at least one

  bool operator==(const AlignmentHeads& other) const {
    return layer == other.layer && heads == other.heads;
  }
};

}  // namespace ct2triton
