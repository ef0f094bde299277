// SPDX-License-Identifier: Apache-2.0
//
// For processors without any of the instructions, in plain C++.
#include "engine/compute/cpu/products/kernel_body.h"

namespace ct2triton::products {
namespace {

struct PlainTile : ByteTile {
  static constexpr int kOutputs = 16;
  static constexpr int kGroup = 1;
  static constexpr int kRows = 4;
  static constexpr bool kFetches = false;
  using Code = int16_t;

  template <int kCount, bool kFetch>
  static void Sums(const Code* rows, int64_t stride, const int8_t* weights, const int32_t* start,
                   int64_t groups, const std::byte* /*soon*/, int32_t* sums) {
    for (int row = 0; row < kCount; ++row, rows += stride, sums += kOutputs) {
      int32_t sum[kOutputs];
      std::memcpy(sum, start, sizeof sum);
      for (int64_t input = 0; input < groups; ++input) {
        // 16 bits by 16 bits is what the oldest vector instructions multiply.
        const int16_t code = rows[input];
        for (int i = 0; i < kOutputs; ++i) {
          const int16_t weight = weights[input * kOutputs + i];
          sum[i] += code * weight;
        }
      }
      std::memcpy(sums, sum, sizeof sum);
    }
  }
};

}  // namespace

constexpr Kernel kPlainKernel = MakeKernel<PlainTile>("plain");

}  // namespace ct2triton::products
