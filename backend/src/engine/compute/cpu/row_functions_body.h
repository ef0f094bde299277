// SPDX-License-Identifier: Apache-2.0
//
// The functions of a row, written once in terms of eight lanes, each compiled for its own
// instruction set without contraction: only Fma is a fused multiply-add. Sums follow CTranslate2's
// compiler: in eight lanes, then in four, then the rest. Everything is in an unnamed namespace, see
// products/lane_math.h.
#pragma once

#include <cstddef>

#include "engine/compute/cpu/products/lane_math.h"
#include "engine/compute/cpu/row_functions.h"

namespace ct2triton {
namespace {

using products::Fma;

constexpr size_t kLanes = 8;
constexpr size_t kHalf = kLanes / 2;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

inline Lanes Load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}
inline void Store(const Lanes& lanes, float* to) { std::memcpy(to, &lanes, sizeof lanes); }
inline Lanes FmaEach(const Lanes& a, const Lanes& b, const Lanes& c) {
  Lanes lanes;
  for (size_t k = 0; k < kLanes; ++k) lanes[k] = Fma(a[k], b[k], c[k]);
  return lanes;
}

// Halves the lanes until four are left, and then one.
inline void FoldToHalf(const Lanes& lanes, float* half) {
  for (size_t i = 0; i < kHalf; ++i) half[i] = lanes[i] + lanes[kHalf + i];
}
inline float Fold(const float* half) { return (half[0] + half[2]) + (half[1] + half[3]); }

struct Moments {
  float sum;
  float squares;
};

inline Moments MomentsOf(const float* x, size_t size) {
  Lanes sums{};
  Lanes squares{};
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const Lanes lanes = Load(x + i);
    sums += lanes;
    squares += lanes * lanes;
  }
  float half_sums[kHalf];
  float half_squares[kHalf];
  FoldToHalf(sums, half_sums);
  FoldToHalf(squares, half_squares);
  if (i + kHalf <= size) {
    for (size_t k = 0; k < kHalf; ++k) half_sums[k] += x[i + k];
    for (size_t k = 0; k < kHalf; ++k) half_squares[k] = Fma(x[i + k], x[i + k], half_squares[k]);
    i += kHalf;
  }
  Moments moments{Fold(half_sums), Fold(half_squares)};
  for (; i < size; ++i) {
    moments.sum += x[i];
    moments.squares = Fma(x[i], x[i], moments.squares);
  }
  return moments;
}

void LayerNorm(const float* in, const float* gamma, const float* beta, float epsilon, size_t size,
               float* out) {
  const Moments moments = MomentsOf(in, size);
  const float share = 1.0f / static_cast<float>(size);
  const float mean = moments.sum * share;
  const float variance = Fma(moments.squares, share, -(mean * mean));
  const float factor = 1.0f / __builtin_sqrtf((variance < 0.0f ? 0.0f : variance) + epsilon);
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Store(FmaEach(Load(in + i) - mean, factor * Load(gamma + i), Load(beta + i)), out + i);
  }
  for (; i < size; ++i) out[i] = Fma(in[i] - mean, factor * gamma[i], beta[i]);
}

void RmsNorm(const float* in, const float* gamma, float epsilon, size_t size, float* out) {
  const float share = 1.0f / static_cast<float>(size);
  const float squares = MomentsOf(in, size).squares;
  const float factor = 1.0f / __builtin_sqrtf(Fma(squares, share, epsilon));
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Store(Load(in + i) * Load(gamma + i) * factor, out + i);
  }
  if (i + kHalf <= size) {  // CTranslate2's compiler uses another order here
    for (const size_t end = i + kHalf; i < end; ++i) out[i] = factor * gamma[i] * in[i];
  }
  for (; i < size; ++i) out[i] = in[i] * gamma[i] * factor;
}

inline float LargestOf(const float* values, size_t count) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = values[0];
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      lanes[k] = values[i + k] > lanes[k] ? values[i + k] : lanes[k];
    }
  }
  float largest = lanes[0];
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  for (; i < count; ++i) largest = values[i] > largest ? values[i] : largest;
  return largest;
}

void LogSoftmax(float* values, size_t count) {
  const float largest = LargestOf(values, count);
  Lanes lanes{};
  size_t i = 0;
  for (; count > kLanes && i + kLanes <= count; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      lanes[k] = products::ExpPlus(values[i + k] - largest, lanes[k]);
    }
  }
  float half[kHalf];
  FoldToHalf(lanes, half);
  float sum = Fold(half);
  for (; i < count; ++i) sum += __builtin_expf(values[i] - largest);
  const float shift = -largest - __builtin_logf(sum);
  for (size_t k = 0; k < count; ++k) values[k] += shift;
}

}  // namespace
}  // namespace ct2triton
