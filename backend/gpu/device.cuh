// SPDX-License-Identifier: Apache-2.0
// GPU instructions that C++ lacks; emulation/device.h has them for a CPU.
#pragma once

#define CT2T_UNROLL _Pragma("unroll")
#define CT2T_NO_UNROLL _Pragma("unroll 1")

namespace ct2triton::gpu {

struct Half;
struct Bfloat;

__device__ inline float HalfToFloat(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
__device__ inline unsigned short FloatToHalf(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

__device__ inline unsigned char* SharedMemory() {
  extern __shared__ __align__(128) unsigned char bytes[];
  return bytes;
}

// sums[16, 8] += x[16, 16] * w[16, 8], computed by a warp.
__device__ inline void Mma(float (&sums)[4], const unsigned (&x)[4], const unsigned (&w)[2],
                           const Half&) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w[0]), "r"(w[1]));
#else
  for (int i = 0; i < 2; ++i) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(x[2 * i]), "r"(x[2 * i + 1]), "r"(w[i]));
  }
#endif
}

#if __CUDA_ARCH__ >= 800
#define CT2T_HAS_BFLOAT
__device__ inline void Mma(float (&sums)[4], const unsigned (&x)[4], const unsigned (&w)[2],
                           const Bfloat&) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w[0]), "r"(w[1]));
}
#endif

}  // namespace ct2triton::gpu
