// SPDX-License-Identifier: Apache-2.0
//
// AVX-VNNI: VPDPBUSD on 256 bits, for processors without AVX-512.
#include <immintrin.h>

#include "engine/compute/cpu/products/kernel_body.h"

namespace ct2triton::products {
namespace {

struct AvxVnniTile : ByteTile {
  static constexpr int kOutputs = 16;
  static constexpr int kGroup = 4;
  static constexpr int kRows = 6;
  static constexpr bool kFetches = false;
  using Code = uint8_t;

  template <int kCount, bool kFetch>
  static void Sums(const Code* rows, int64_t stride, const int8_t* weights, const int32_t* start,
                   int64_t groups, const std::byte* /*soon*/, int32_t* sums) {
    const auto* begin = reinterpret_cast<const __m256i*>(start);
    __m256i low[kCount];
    __m256i high[kCount];
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      low[i] = _mm256_loadu_si256(begin);
      high[i] = _mm256_loadu_si256(begin + 1);
    }
    for (int64_t group = 0; group < groups; ++group) {
      const auto* fours = reinterpret_cast<const __m256i*>(weights + group * kOutputs * kGroup);
      const __m256i low_weights = _mm256_load_si256(fours);
      const __m256i high_weights = _mm256_load_si256(fours + 1);
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        int32_t four;
        std::memcpy(&four, rows + i * stride + group * kGroup, sizeof four);
        const __m256i codes = _mm256_set1_epi32(four);
        low[i] = _mm256_dpbusd_avx_epi32(low[i], codes, low_weights);
        high[i] = _mm256_dpbusd_avx_epi32(high[i], codes, high_weights);
      }
    }
    auto* out = reinterpret_cast<__m256i*>(sums);
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      _mm256_storeu_si256(out + 2 * i, low[i]);
      _mm256_storeu_si256(out + 2 * i + 1, high[i]);
    }
  }
};

}  // namespace

constexpr Kernel kAvxVnniKernel = MakeKernel<AvxVnniTile>("avxvnni");

}  // namespace ct2triton::products
