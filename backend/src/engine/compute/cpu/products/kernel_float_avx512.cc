// SPDX-License-Identifier: Apache-2.0
//
// Floats by AVX-512: 32 outputs of up to 12 rows in 24 of the 32 registers, as for bytes.
#include <immintrin.h>

#include "engine/compute/cpu/products/kernel_body.h"

namespace ct2triton::products {
namespace {

struct Avx512FloatTile : FloatTile {
  static constexpr int kOutputs = 32;
  static constexpr int kRows = 12;
  static constexpr bool kFetches = true;

  // A function for each count, and a pointer for three rows: see kernel_avx512vnni.cc.
  template <int kCount, bool kFetch>
  __attribute__((noinline)) static void Sums(const float* rows, int64_t stride,
                                             const float* weights, const int32_t* /*start*/,
                                             int64_t groups, const std::byte* soon, float* sums) {
    __m512 low[kCount];
    __m512 high[kCount];
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) low[i] = high[i] = _mm512_setzero_ps();
    const float* thirds[(kCount + 2) / 3];
#pragma GCC unroll 16
    for (int i = 0; i < kCount; i += 3) thirds[i / 3] = rows + i * stride;
    for (int64_t input = 0; input < groups; ++input) {
      if (kFetch) _mm_prefetch(soon + input * kCacheLine, _MM_HINT_T1);
      const __m512 low_weights = _mm512_load_ps(weights + input * kOutputs);
      const __m512 high_weights = _mm512_load_ps(weights + input * kOutputs + 16);
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        const __m512 value = _mm512_set1_ps(thirds[i / 3][(i % 3) * stride]);
        low[i] = _mm512_fmadd_ps(value, low_weights, low[i]);
        high[i] = _mm512_fmadd_ps(value, high_weights, high[i]);
      }
#pragma GCC unroll 16
      for (const float*& third : thirds) ++third;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      _mm512_storeu_ps(sums + kOutputs * i, low[i]);
      _mm512_storeu_ps(sums + kOutputs * i + 16, high[i]);
    }
  }
};

}  // namespace

constexpr Kernel kAvx512FloatKernel = MakeKernel<Avx512FloatTile>("avx512", WeightType::kFloat32);

}  // namespace ct2triton::products
