// SPDX-License-Identifier: Apache-2.0
// Runs kernels of CUDA C++ on a CPU: each thread of a block is a fiber, and blocks run one by one.
// Barriers and warp operations wait as on a GPU. A seed chooses the order in which fibers run, so
// that a missing barrier shows; shared memory is filled with NaN when a block begins. If threads
// wait for each other forever, or at different operations, the program ends with a message.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __launch_bounds__(...)
#define CT2T_HAS_BFLOAT
#define CT2T_UNROLL
#define CT2T_NO_UNROLL

using std::max;
using std::min;

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

namespace emulation {

struct Thread {
  Dim index;
};
extern Thread* running;
extern Dim block_index, block_dim, grid_dim;

void WaitForBlock();
unsigned char* BlockMemory();  // of exactly the size that the launch gives

// A warp operation. Each lane passes an operand; the lane that arrives last calls `combine` with
// the operands of all lanes.
using Combine = void (*)(void* const (&operands)[32]);
void WaitForWarp(const char* operation, void* operand, Combine combine);

using Run = void (*)(const void* args);
bool Register(const char* name, size_t args_bytes, unsigned threads, Run run);

}  // namespace emulation

#define threadIdx (emulation::running->index)
#define blockIdx emulation::block_index
#define blockDim emulation::block_dim
#define gridDim emulation::grid_dim

#define CT2T_KERNEL(name, Args, threads, ...)           \
  const bool registered_##name =                        \
      emulation::Register(#name, sizeof(Args), threads, \
                          [](const void* args) { __VA_ARGS__(*static_cast<const Args*>(args)); });

inline void __syncthreads() { emulation::WaitForBlock(); }
inline void __syncwarp() {
  emulation::WaitForWarp("syncwarp", nullptr, [](void* const(&)[32]) {});
}

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  struct Lane {
    T value, result;
    int partner;
  } lane{value, {}, static_cast<int>(threadIdx.x % 32) ^ mask};
  emulation::WaitForWarp("shuffle", &lane, [](void* const(&all)[32]) {
    for (void* one : all) {
      auto* own = static_cast<Lane*>(one);
      own->result = static_cast<const Lane*>(all[own->partner])->value;
    }
  });
  return lane.result;
}

inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

namespace ct2triton::gpu {

struct Half;
struct Bfloat;

inline float HalfToFloat(unsigned short bits) {
  _Float16 x;
  std::memcpy(&x, &bits, sizeof x);
  return static_cast<float>(x);
}
inline unsigned short FloatToHalf(float x) {
  const auto half = static_cast<_Float16>(x);
  unsigned short bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

inline unsigned char* SharedMemory() { return emulation::BlockMemory(); }

template <class T>
float OfPair(unsigned pair, int which);
template <>
inline float OfPair<Half>(unsigned pair, int which) {
  return HalfToFloat(static_cast<unsigned short>(pair >> (16 * which)));
}
template <>
inline float OfPair<Bfloat>(unsigned pair, int which) {
  return __uint_as_float(which == 0 ? pair << 16 : pair & 0xffff0000U);
}

// sums[16, 8] += x[16, 16] * w[16, 8]. Lanes hold the numbers that the instruction mma.m16n8k16
// assigns to them (PTX ISA, "Matrix Fragments for mma.m16n8k16").
template <class T>
void Mma(float (&sums)[4], const unsigned (&x)[4], const unsigned (&w)[2], const T&) {
  struct Operands {
    float* sums;
    const unsigned *x, *w;
  } own{sums, x, w};
  emulation::WaitForWarp("mma", &own, [](void* const(&all)[32]) {
    float rows[16][16], columns[16][8];  // columns: [k][n]
    for (int lane = 0; lane < 32; ++lane) {
      const auto* of = static_cast<const Operands*>(all[lane]);
      const int line = lane / 4, pair = lane % 4 * 2;
      for (int i = 0; i < 2; ++i) {
        for (int part = 0; part < 4; ++part) {
          rows[line + part % 2 * 8][pair + part / 2 * 8 + i] = OfPair<T>(of->x[part], i);
        }
        for (int part = 0; part < 2; ++part) {
          columns[pair + part * 8 + i][line] = OfPair<T>(of->w[part], i);
        }
      }
    }
    float sum[16][8] = {};
    for (int r = 0; r < 16; ++r) {
      for (int k = 0; k < 16; ++k) {
        for (int n = 0; n < 8; ++n) sum[r][n] += rows[r][k] * columns[k][n];
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      const auto* of = static_cast<const Operands*>(all[lane]);
      for (int i = 0; i < 4; ++i) of->sums[i] += sum[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
    }
  });
}

}  // namespace ct2triton::gpu
