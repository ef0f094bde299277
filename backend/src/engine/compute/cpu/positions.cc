// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/positions.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ct2triton {
namespace {

// Half of the buckets have one distance each; the width of the others grows logarithmically.
size_t Bucket(size_t distance, size_t buckets, size_t max_distance) {
  const size_t exact = buckets / 2;
  if (distance < exact) return distance;
  const float octaves = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                        std::log(static_cast<float>(max_distance) / static_cast<float>(exact));
  const float bucket = static_cast<float>(exact) + octaves * static_cast<float>(buckets - exact);
  return std::min(static_cast<size_t>(bucket), buckets - 1);
}

}  // namespace

void SinusoidalPosition(size_t position, size_t width, float* out) {
  const size_t half = width / 2;
  const float step = std::log(10000.0F) / static_cast<float>(half - 1);
  for (size_t i = 0; i < half; ++i) {
    const float frequency = std::exp(-step * static_cast<float>(i));
    const float angle = static_cast<float>(position + 1) * frequency;  // the first position is 1
    out[i] = std::sin(angle);
    out[half + i] = std::cos(angle);
  }
}

PositionEncodings::PositionEncodings(std::vector<float> stored, size_t width)
    : width_(width), has_all_(!stored.empty()), encodings_(std::move(stored)) {
  if (has_all_) return;
  constexpr size_t kPositions = 512;  // later ones are computed when needed
  encodings_.resize(kPositions * width_);
  for (size_t position = 0; position < kPositions; ++position) {
    SinusoidalPosition(position, width_, encodings_.data() + position * width_);
  }
}

void PositionEncodings::Add(size_t position, float* embedding) const {
  std::vector<float> computed;
  const float* encoding = encodings_.data() + position * width_;
  if (!has_all_ && (position + 1) * width_ > encodings_.size()) {
    computed.resize(width_);
    SinusoidalPosition(position, width_, computed.data());
    encoding = computed.data();
  }
  for (size_t i = 0; i < width_; ++i) embedding[i] += encoding[i];
}

std::vector<float> BiasByDistance(const std::vector<float>& table, size_t heads,
                                  size_t max_distance, bool encoder) {
  const size_t buckets = table.size() / heads;
  const size_t of_one_side = encoder ? buckets / 2 : buckets;
  const size_t row = 2 * max_distance + 1;
  std::vector<float> bias(heads * row);
  for (size_t distance = 0; distance <= max_distance; ++distance) {
    const size_t before =
        distance < max_distance ? Bucket(distance, of_one_side, max_distance) : of_one_side - 1;
    const size_t behind = encoder && distance > 0 ? before + of_one_side : before;
    for (size_t head = 0; head < heads; ++head) {
      bias[head * row + max_distance - distance] = table[before * heads + head];
      bias[head * row + max_distance + distance] = table[behind * heads + head];
    }
  }
  return bias;
}

}  // namespace ct2triton
