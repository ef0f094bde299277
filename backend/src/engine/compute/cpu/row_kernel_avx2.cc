// SPDX-License-Identifier: Apache-2.0
//
// For processors with AVX2 and FMA.
#include "engine/compute/cpu/row_kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define KERNEL_TARGET __attribute__((target("avx2,fma")))
#include "engine/compute/cpu/row_attention_body.h"
#include "engine/compute/cpu/row_kernel_body.h"

namespace ct2triton {
namespace {

struct Avx2Lanes {
  static constexpr size_t kWidth = 8;
  static constexpr bool kManyRegisters = false;
  using Register = __m256;

  KERNEL_TARGET static Register Set(float value) { return _mm256_set1_ps(value); }
  KERNEL_TARGET static Register Load(const float* from) { return _mm256_loadu_ps(from); }
  KERNEL_TARGET static Register LoadPart(const float* from, size_t count) {
    alignas(32) static constexpr int32_t kMask[2 * kWidth] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const auto* mask = reinterpret_cast<const __m256i*>(kMask + kWidth - count);
    return _mm256_maskload_ps(from, _mm256_loadu_si256(mask));
  }
  KERNEL_TARGET static void Store(float* to, Register a) { _mm256_storeu_ps(to, a); }
  KERNEL_TARGET static Register Add(Register a, Register b) { return _mm256_add_ps(a, b); }
  KERNEL_TARGET static Register Multiply(Register a, Register b) { return _mm256_mul_ps(a, b); }
  KERNEL_TARGET static Register MultiplyAdd(Register a, Register b, Register c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  KERNEL_TARGET static Register Max(Register a, Register b) { return _mm256_max_ps(a, b); }
  KERNEL_TARGET static Register Min(Register a, Register b) { return _mm256_min_ps(a, b); }
  KERNEL_TARGET static Register Floor(Register a) { return _mm256_floor_ps(a); }
  KERNEL_TARGET static Register TimesPowerOfTwo(Register a, Register power) {
    constexpr int kBias = 127;
    constexpr int kMantissaBits = 23;
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(power), _mm256_set1_epi32(kBias));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, kMantissaBits)));
  }
  KERNEL_TARGET static float Sum(Register a) {
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    sum = _mm_add_ss(sum, _mm_movehdup_ps(sum));
    return _mm_cvtss_f32(sum);
  }
  KERNEL_TARGET static void FourSums(const Register* a, float* out) {
    const Register halves = _mm256_hadd_ps(_mm256_hadd_ps(a[0], a[1]), _mm256_hadd_ps(a[2], a[3]));
    _mm_storeu_ps(out,
                  _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
  }
  KERNEL_TARGET static bool AnyEqual(Register a, Register b) {
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)) != 0;
  }
};

}  // namespace

const RowKernel kAvx2RowKernel = {"avx2", &Attend<Avx2Lanes>, &AttendRow<Avx2Lanes>,
                                  &FirstMaximum<Avx2Lanes>, &kAvx2RowFunctions};

}  // namespace ct2triton

#endif
