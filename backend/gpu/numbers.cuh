// SPDX-License-Identifier: Apache-2.0
// Number types, and 16 by 16 matrix products computed by a warp.
#pragma once

#include "args.h"
#ifdef CT2T_EMULATE
#include "emulation/device.h"
#else
#include "device.cuh"
#endif

namespace ct2triton::gpu {

constexpr float kGreatest = 3.402823466e38F;
constexpr float kLowest = -kGreatest;

struct Half {
  unsigned short bits;
};
struct Bfloat {
  unsigned short bits;
};

template <class T>
struct alignas(sizeof(T) * 8 < 16 ? sizeof(T) * 8 : 16) Eight {
  T of[8];
};

__device__ inline float Infinity() { return __uint_as_float(0x7f800000U); }

__device__ inline float Widen(float x) { return x; }
__device__ inline float Widen(signed char x) { return x; }
__device__ inline float Widen(Half x) { return HalfToFloat(x.bits); }
__device__ inline float Widen(Bfloat x) { return __uint_as_float(unsigned{x.bits} << 16); }

template <class T>
__device__ T Narrow(float x);
template <>
__device__ inline float Narrow<float>(float x) {
  return x;
}
template <>
__device__ inline Half Narrow<Half>(float x) {
  return {FloatToHalf(x)};
}
template <>
__device__ inline Bfloat Narrow<Bfloat>(float x) {
  const unsigned bits = __float_as_uint(x);
  const bool is_number = x == x;
  const unsigned rounded = bits + 0x7fff + (bits >> 16 & 1);
  return {static_cast<unsigned short>(is_number ? rounded >> 16 : 0x7fc0)};
}

template <class T>
__device__ Eight<T> LoadEight(const T* from) {
  return *reinterpret_cast<const Eight<T>*>(from);
}

// Position of weight [n, k]. Weights are stored in tiles of 16 outputs by 16 inputs, in which each
// lane has eight consecutive numbers, so a warp loads a tile without shared memory.
template <class W>
__device__ inline size_t PackedPlace(int n, int k, int inputs) {
  const size_t tile = static_cast<size_t>(n / 16) * (inputs / 16) + k / 16;
  const int row = n % 16, column = k % 16;
  int lane, element;
  if constexpr (sizeof(W) == 4) {
    lane = column / 8 * 16 + row;
    element = column % 8;
  } else {  // the layout of the second operand of mma.m16n8k16, twice 8 outputs
    lane = row % 8 * 4 + column % 8 / 2;
    element = row / 8 * 4 + column / 8 * 2 + column % 2;
  }
  return tile * 256 + lane * 8 + element;
}

__device__ inline unsigned Pair(const Half* x) { return *reinterpret_cast<const unsigned*>(x); }
__device__ inline unsigned Pair(const Bfloat* x) { return *reinterpret_cast<const unsigned*>(x); }

// Sums of a tile of 16 rows by 16 outputs, distributed over a warp. Each sum adds its products in
// the order of k, which is the same in every tile.
template <class A>
struct Sums {
  float of[2][4] = {};

  // rows: 16 rows of 16 inputs.
  __device__ void Add(const A* rows, int stride, const Eight<A>& weights) {
    const int lane = threadIdx.x % 32;
    const A* own = rows + lane / 4 * stride + lane % 4 * 2;
    const A* below = own + 8 * stride;
    const unsigned x[4] = {Pair(own), Pair(below), Pair(own + 8), Pair(below + 8)};
    for (int i = 0; i < 2; ++i) {
      const unsigned w[2] = {Pair(weights.of + 4 * i), Pair(weights.of + 4 * i + 2)};
      Mma(of[i], x, w, A());
    }
  }
  // to: [16, 16]
  __device__ void Store(float* to) const {
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < 2; ++i) {
      float* place = to + lane / 4 * 16 + lane % 4 * 2 + 8 * i;
      place[0] = of[i][0];
      place[1] = of[i][1];
      place[128] = of[i][2];
      place[129] = of[i][3];
    }
  }
};

// float32, without tensor cores: a lane has half of the inputs of one output.
template <>
struct Sums<float> {
  float of[16] = {};

  __device__ void Add(const float* rows, int stride, const Eight<float>& weights) {
    const float* own = rows + threadIdx.x % 32 / 16 * 8;
    for (int r = 0; r < 16; ++r) {
      const Eight<float> x = LoadEight(own + r * stride);
      for (int i = 0; i < 8; ++i) of[r] = __fmaf_rn(x.of[i], weights.of[i], of[r]);
    }
  }
  __device__ void Store(float* to) const {
    const int lane = threadIdx.x % 32;
    for (int r = 0; r < 16; ++r) {
      const float sum = of[r] + __shfl_xor_sync(~0U, of[r], 16);
      if (lane < 16) to[r * 16 + lane] = sum;
    }
  }
};

template <class A, class W>
__device__ Eight<A> As(const Eight<W>& from) {
  if constexpr (sizeof(W) == sizeof(A)) {
    return from;
  } else {
    Eight<A> to;
    for (int i = 0; i < 8; ++i) to.of[i] = Narrow<A>(Widen(from.of[i]));
    return to;
  }
}

template <int kLanes>
__device__ float SumOf(float x) {
  for (int i = kLanes / 2; i > 0; i /= 2) x += __shfl_xor_sync(~0U, x, i);
  return x;
}

template <int kLanes>
__device__ float MostOf(float x) {
  for (int i = kLanes / 2; i > 0; i /= 2) x = fmaxf(x, __shfl_xor_sync(~0U, x, i));
  return x;
}

// The spread of 16 numbers, one per lane of half a warp.
__device__ inline Spread SpreadOf(float x) {
  const float mean = SumOf<16>(x) / 16;
  return {mean, SumOf<16>((x - mean) * (x - mean))};
}

// The statistics of a row that normalize it: (x - mean) * inverse * gamma + beta.
struct RowNorm {
  float mean, inverse;
};

// Computed by one warp; every lane gets the result.
__device__ inline RowNorm NormOf(const Norm& norm, const Spread* spread, int width) {
  if (norm.gamma == nullptr) return {0, 1};
  const int lane = threadIdx.x % 32, parts = width / 16;
  float sum = 0;
  for (int i = lane; i < parts; i += 32) sum += spread[i].mean;
  const float middle = SumOf<32>(sum) / parts;
  const float subtracted = norm.beta == nullptr ? 0 : middle;
  float squares = 0;
  for (int i = lane; i < parts; i += 32) {
    const float apart = spread[i].mean - subtracted;
    squares += spread[i].squares + 16 * apart * apart;
  }
  return {subtracted, 1 / sqrtf(SumOf<32>(squares) / width + norm.epsilon)};
}

__device__ inline float Normalized(const Norm& norm, const RowNorm& row, int column, float x) {
  if (norm.gamma == nullptr) return x;
  const float y = (x - row.mean) * row.inverse * norm.gamma[column];
  return norm.beta == nullptr ? y : y + norm.beta[column];
}

template <class A>
__device__ A* SlotOf(const Cache& cache, int slot) {
  A* slab = static_cast<A*>(cache.slabs[slot >> cache.slab_shift]);
  const int within = slot & ((1 << cache.slab_shift) - 1);
  return slab + cache.layer + static_cast<size_t>(within) * cache.stride;
}

template <class T>
__device__ T& Shared() {
  return *reinterpret_cast<T*>(SharedMemory());
}

}  // namespace ct2triton::gpu
