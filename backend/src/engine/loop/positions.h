// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace ct2triton {

// The encoding of a position in a model that stores none: sines, then cosines, as OpenNMT-tf
// numbers them. out: [width].
void SinusoidalPosition(size_t position, size_t width, float* out);

// T5's bias of the attention of a decoder: the token at a distance d before the query gets that of
// the bucket of d. Distances from max_distance on share the last bucket.
// table: [buckets, heads]. Returns [heads, max_distance + 1].
std::vector<float> BiasByDistance(const float* table, size_t buckets, size_t heads,
                                  size_t max_distance);

}  // namespace ct2triton
