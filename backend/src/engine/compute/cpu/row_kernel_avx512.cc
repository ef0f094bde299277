// SPDX-License-Identifier: Apache-2.0
//
// For processors with AVX-512F.
#include "engine/compute/cpu/row_kernel.h"

#if defined(__x86_64__)

// False warning in GCC's own header (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstddef>

#define KERNEL_TARGET __attribute__((target("avx512f")))
#include "engine/compute/cpu/row_attention_body.h"
#include "engine/compute/cpu/row_kernel_body.h"

namespace ct2triton {
namespace {

struct Avx512Lanes {
  static constexpr size_t kWidth = 16;
  static constexpr bool kManyRegisters = true;  // 32
  using Register = __m512;

  KERNEL_TARGET static Register Set(float value) { return _mm512_set1_ps(value); }
  KERNEL_TARGET static Register Load(const float* from) { return _mm512_loadu_ps(from); }
  KERNEL_TARGET static Register LoadPart(const float* from, size_t count) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1), from);
  }
  KERNEL_TARGET static void Store(float* to, Register a) { _mm512_storeu_ps(to, a); }
  KERNEL_TARGET static Register Add(Register a, Register b) { return _mm512_add_ps(a, b); }
  KERNEL_TARGET static Register Multiply(Register a, Register b) { return _mm512_mul_ps(a, b); }
  KERNEL_TARGET static Register MultiplyAdd(Register a, Register b, Register c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  KERNEL_TARGET static Register Max(Register a, Register b) { return _mm512_max_ps(a, b); }
  KERNEL_TARGET static Register Min(Register a, Register b) { return _mm512_min_ps(a, b); }
  KERNEL_TARGET static Register Floor(Register a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  }
  KERNEL_TARGET static Register TimesPowerOfTwo(Register a, Register power) {
    return _mm512_scalef_ps(a, power);
  }
  KERNEL_TARGET static float Sum(Register a) { return _mm512_reduce_add_ps(a); }
  KERNEL_TARGET static void FourSums(const Register* a, float* out) {
    // Two pairs, then all four, in each quarter of a register; then the quarters.
    const Register first = Add(_mm512_unpacklo_ps(a[0], a[1]), _mm512_unpackhi_ps(a[0], a[1]));
    const Register second = Add(_mm512_unpacklo_ps(a[2], a[3]), _mm512_unpackhi_ps(a[2], a[3]));
    const Register quarters = Add(_mm512_shuffle_ps(first, second, _MM_SHUFFLE(1, 0, 1, 0)),
                                  _mm512_shuffle_ps(first, second, _MM_SHUFFLE(3, 2, 3, 2)));
    const __m128 low =
        _mm_add_ps(_mm512_castps512_ps128(quarters), _mm512_extractf32x4_ps(quarters, 1));
    const __m128 high =
        _mm_add_ps(_mm512_extractf32x4_ps(quarters, 2), _mm512_extractf32x4_ps(quarters, 3));
    _mm_storeu_ps(out, _mm_add_ps(low, high));
  }
  KERNEL_TARGET static bool AnyEqual(Register a, Register b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ) != 0;
  }
};

}  // namespace

const RowKernel kAvx512RowKernel = {"avx512", &Attend<Avx512Lanes>, &AttendRow<Avx512Lanes>,
                                    &FirstMaximum<Avx512Lanes>, &kAvx2RowFunctions};

}  // namespace ct2triton

#endif
