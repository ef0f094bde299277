// SPDX-License-Identifier: Apache-2.0
//
// Floats, for processors without any of the instructions, in plain C++.
#include "engine/compute/cpu/products/kernel_body.h"

namespace ct2triton::products {
namespace {

struct PlainFloatTile : FloatTile {
  static constexpr int kOutputs = 16;
  static constexpr int kRows = 4;
  static constexpr bool kFetches = false;

  template <int kCount, bool kFetch>
  static void Sums(const float* rows, int64_t stride, const float* weights,
                   const int32_t* /*start*/, int64_t groups, const std::byte* /*soon*/,
                   float* sums) {
    for (int row = 0; row < kCount; ++row, rows += stride, sums += kOutputs) {
      float sum[kOutputs] = {};
      for (int64_t input = 0; input < groups; ++input) {
        for (int i = 0; i < kOutputs; ++i) sum[i] += rows[input] * weights[input * kOutputs + i];
      }
      std::memcpy(sums, sum, sizeof sum);
    }
  }
};

}  // namespace

constexpr Kernel kPlainFloatKernel = MakeKernel<PlainFloatTile>("plain", WeightType::kFloat32);

}  // namespace ct2triton::products
