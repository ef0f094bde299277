// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace ct2triton {

// The encoding of a position in a model that stores none: sines, then cosines, as OpenNMT-tf
// numbers them. out: [width].
void SinusoidalPosition(size_t position, size_t width, float* out);

// Encodings of the positions of one side of a model: stored ones, or sines.
class PositionEncodings {
 public:
  // stored: [positions, width], which must live as long; null: none.
  PositionEncodings(const float* stored, size_t width);

  // Adds the encoding of a position, which must be among the stored ones, if there are some.
  void Add(size_t position, float* embedding) const;

 private:
  const float* stored_;
  size_t width_;
  std::vector<float> computed_;  // the first ones, where none are stored
};

// T5's bias of the attention of a decoder: the token at a distance d before the query gets that of
// the bucket of d. Distances from max_distance on share the last bucket.
// table: [buckets, heads]. Returns [heads, max_distance + 1].
std::vector<float> BiasByDistance(const float* table, size_t buckets, size_t heads,
                                  size_t max_distance);

}  // namespace ct2triton
