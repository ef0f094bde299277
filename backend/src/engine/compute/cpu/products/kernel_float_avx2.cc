// SPDX-License-Identifier: Apache-2.0
//
// Floats by AVX2 with FMA: 16 outputs of up to 6 rows in 12 of the 16 registers.
#include <immintrin.h>

#include "engine/compute/cpu/products/kernel_body.h"

namespace ct2triton::products {
namespace {

struct Avx2FloatTile : FloatTile {
  static constexpr int kOutputs = 16;
  static constexpr int kRows = 6;
  static constexpr bool kFetches = false;

  template <int kCount, bool kFetch>
  static void Sums(const float* rows, int64_t stride, const float* weights,
                   const int32_t* /*start*/, int64_t groups, const std::byte* /*soon*/,
                   float* sums) {
    __m256 low[kCount];
    __m256 high[kCount];
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) low[i] = high[i] = _mm256_setzero_ps();
    for (int64_t input = 0; input < groups; ++input) {
      const __m256 low_weights = _mm256_load_ps(weights + input * kOutputs);
      const __m256 high_weights = _mm256_load_ps(weights + input * kOutputs + 8);
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        const __m256 value = _mm256_broadcast_ss(rows + i * stride + input);
        low[i] = _mm256_fmadd_ps(value, low_weights, low[i]);
        high[i] = _mm256_fmadd_ps(value, high_weights, high[i]);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      _mm256_storeu_ps(sums + i * kOutputs, low[i]);
      _mm256_storeu_ps(sums + i * kOutputs + 8, high[i]);
    }
  }
};

}  // namespace

constexpr Kernel kAvx2FloatKernel = MakeKernel<Avx2FloatTile>("avx2", WeightType::kFloat32);

}  // namespace ct2triton::products
