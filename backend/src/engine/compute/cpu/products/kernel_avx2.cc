// SPDX-License-Identifier: Apache-2.0
//
// AVX2: bytes widened to 16 bits, then vpmaddwd, which is exact. (vpmaddubsw takes bytes, but its
// sums of two products are cut to 16 bits.)
#include <immintrin.h>

#include "engine/compute/cpu/products/kernel_body.h"

namespace ct2triton::products {
namespace {

struct Avx2Tile : ByteTile {
  static constexpr int kOutputs = 16;
  static constexpr int kGroup = 2;
  static constexpr int kRows = 6;
  static constexpr bool kFetches = false;
  using Code = int16_t;

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
      const auto* pairs = reinterpret_cast<const __m128i*>(weights + group * kOutputs * kGroup);
      const __m256i low_weights = _mm256_cvtepi8_epi16(_mm_load_si128(pairs));
      const __m256i high_weights = _mm256_cvtepi8_epi16(_mm_load_si128(pairs + 1));
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        int32_t pair;
        std::memcpy(&pair, rows + i * stride + group * kGroup, sizeof pair);
        const __m256i codes = _mm256_set1_epi32(pair);
        low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(codes, low_weights));
        high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(codes, high_weights));
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

constexpr Kernel kAvx2Kernel = MakeKernel<Avx2Tile>("avx2");

}  // namespace ct2triton::products
