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
  // stored: [positions, width]; empty: none.
  PositionEncodings(std::vector<float> stored, size_t width);

  // Adds the encoding of a position, which must be a stored one, if any are stored.
  void Add(size_t position, float* embedding) const;
  size_t bytes() const { return encodings_.size() * sizeof(float); }

 private:
  size_t width_;
  bool has_all_;
  std::vector<float> encodings_;  // stored, or if none are, the first computed ones
};

// T5's attention bias in the layout of DistanceBias: a key at a distance d gets the bias of d's
// bucket. In an encoder, keys after the query use the second half of the buckets; a decoder has no
// such keys. Distances from max_distance on share the last bucket. table: [buckets, heads].
std::vector<float> BiasByDistance(const std::vector<float>& table, size_t heads,
                                  size_t max_distance, bool encoder);

}  // namespace ct2triton
