// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/products/quantized_rows.h"

#include "engine/compute/cpu/products/round_up.h"

namespace ct2triton::products {
namespace {

constexpr int64_t kCacheLine = 64;

// Bytes from row to row: an odd number of cache lines, so that the rows of a tile, which are read
// together, do not compete for the same cache sets.
int64_t RowStride(int64_t bytes) {
  const int64_t lines = RoundUp(bytes, kCacheLine) / kCacheLine;
  return (lines | 1) * kCacheLine;
}

}  // namespace

void QuantizedRows::Assign(const Kernel& kernel, Rounding rounding, const float* in, int64_t rows,
                           int64_t inputs) {
  const int64_t padded = RoundUp<int64_t>(inputs, kernel.group);
  kernel_ = &kernel;
  rows_ = rows;
  inputs_ = inputs;
  stride_ = RowStride(padded * kernel.code_bytes);
  const auto bytes = static_cast<size_t>(rows * stride_);
  if (codes_.size() < bytes) codes_.resize(bytes);
  if (inverse_.size() < static_cast<size_t>(rows)) inverse_.resize(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    inverse_[static_cast<size_t>(row)] =
        kernel.quantize(in + row * inputs, inputs, padded, rounding, &codes_[row * stride_]);
  }
}

}  // namespace ct2triton::products
