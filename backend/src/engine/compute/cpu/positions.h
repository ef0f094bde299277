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

  // Adds the encoding of a position, which must be among the stored ones, if there are some.
  void Add(size_t position, float* embedding) const;
  size_t bytes() const { return encodings_.size() * sizeof(float); }

 private:
  size_t width_;
  bool has_all_;
  std::vector<float> encodings_;  // the stored ones; or else the first of those that are computed
};

// T5's bias of an attention, as DistanceBias has it: a key at a distance d gets that of the bucket
// of d. In an encoder, keys after the query have the second half of the buckets; in a decoder
// there are none. Distances from max_distance on share the last bucket. table: [buckets, heads].
std::vector<float> BiasByDistance(const std::vector<float>& table, size_t heads,
                                  size_t max_distance, bool encoder);

}  // namespace ct2triton
