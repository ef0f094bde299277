// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 VNNI: VPDPBUSD on 512 bits, 32 outputs of up to 12 rows in 24 of the 32 registers.
#include <immintrin.h>

#include "engine/compute/cpu/products/kernel_body.h"

namespace ct2triton::products {
namespace {

struct Avx512VnniTile : ByteTile {
  static constexpr int kOutputs = 32;
  static constexpr int kGroup = 4;
  static constexpr int kRows = 12;
  static constexpr bool kFetches = true;
  using Code = uint8_t;

  // A separate function for each count: inlined together, the pointers to the rows exceeded the
  // registers, which made 8 rows 5 % slower.
  template <int kCount, bool kFetch>
  __attribute__((noinline)) static void Sums(const Code* rows, int64_t stride,
                                             const int8_t* weights, const int32_t* start,
                                             int64_t groups, const std::byte* soon, int32_t* sums) {
    // The sums must stay in registers: these loops are unrolled early, so that GCC puts each
    // element into a register. measure_products.py measures the loss with a compiler that does not.
    __m512i low[kCount];
    __m512i high[kCount];
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      low[i] = _mm512_loadu_si512(start);
      high[i] = _mm512_loadu_si512(start + 16);
    }
    // An address may add the stride once or twice, so that a pointer serves three rows.
    const Code* thirds[(kCount + 2) / 3];
#pragma GCC unroll 16
    for (int i = 0; i < kCount; i += 3) thirds[i / 3] = rows + i * stride;
    for (int64_t group = 0; group < groups; ++group) {
      if (kFetch) _mm_prefetch(soon + group * kCacheLine, _MM_HINT_T1);
      const int8_t* fours = weights + group * kOutputs * kGroup;
      const __m512i low_weights = _mm512_load_si512(fours);
      const __m512i high_weights = _mm512_load_si512(fours + 64);
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        int32_t four;
        std::memcpy(&four, thirds[i / 3] + (i % 3) * stride, sizeof four);
        const __m512i codes = _mm512_set1_epi32(four);
        low[i] = _mm512_dpbusd_epi32(low[i], codes, low_weights);
        high[i] = _mm512_dpbusd_epi32(high[i], codes, high_weights);
      }
#pragma GCC unroll 16
      for (const Code*& third : thirds) third += kGroup;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      _mm512_storeu_si512(sums + 32 * i, low[i]);
      _mm512_storeu_si512(sums + 32 * i + 16, high[i]);
    }
  }
};

}  // namespace

constexpr Kernel kAvx512VnniKernel = MakeKernel<Avx512VnniTile>("avx512vnni");

}  // namespace ct2triton::products
