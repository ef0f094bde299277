// SPDX-License-Identifier: Apache-2.0
// y = x * weight^T, with a fused norm before and an epilogue after it. k is cut into the same
// slices for every batch and tile, and slices are added in one order, so the bits of a row do not
// depend on other rows.
#pragma once

#include "numbers.cuh"

namespace ct2triton::gpu {

constexpr int kWarps = 8;  // per block of a product; each sums one slice of k
// Number of weight tiles that a warp prefetches.
template <class W>
constexpr int kTilesAhead = sizeof(W) == 4 ? 1 : 4;

template <class A, int kTiles>
struct ProductShared {
  static constexpr int kStride =
      sizeof(A) == 4 ? 20 : 24;  // of staged rows, free of bank conflicts
  RowNorm norm[16 * kTiles];
  union {
    alignas(16) A staged[kWarps][kTiles][16 * kStride];  // normalized rows
    float sums[kWarps][kTiles][256];
  };
};

__device__ inline float Activated(Activation activation, float x) {
  switch (activation) {
    case kRelu:
      return fmaxf(x, 0.F);
    case kGeluTanh:
      return 0.5F * x * (1 + tanhf(0.7978845608028654F * (x + 0.044715F * x * x * x)));
    case kSwish:
      return x / (1 + expf(-x));
    case kGelu:
      return 0.5F * x * (1 + erff(x * 0.7071067811865475F));
    case kGeluSigmoid:
      return x / (1 + expf(-1.702F * x));
    case kTanh:
      return tanhf(x);
    case kSigmoid:
      return 1 / (1 + expf(-x));
    default:
      return x;
  }
}

__device__ inline int SourceRow(const ProductArgs& a, int row) {
  return a.rows == nullptr ? row : a.rows[row];
}

// Normalizes 16 columns of 16 rows, from column k on; executed by one warp.
template <class A>
__device__ void Stage(const ProductArgs& a, int first_row, int k, const RowNorm* norm, A* to,
                      int stride) {
  const int lane = threadIdx.x % 32;
  const int r = lane / 2, c = k + lane % 2 * 8;
  const float* from = a.in.x + static_cast<size_t>(SourceRow(a, first_row + r)) * a.matrix.k + c;
  const Eight<float> x = LoadEight(from);
  Eight<A> staged;
  for (int i = 0; i < 8; ++i) {
    staged.of[i] = Narrow<A>(Normalized(a.norm, norm[r], c + i, x.of[i]));
  }
  *reinterpret_cast<Eight<A>*>(to + r * stride + lane % 2 * 8) = staged;
}

template <class A>
__device__ void ToCache(const ProductArgs& a, int row, int column, float y) {
  if (column < a.split) {
    static_cast<A*>(a.out)[static_cast<size_t>(row) * a.split + column] = Narrow<A>(y);
  } else if (a.slot[row] >= 0) {
    SlotOf<A>(a.cache, a.slot[row])[column - a.split] = Narrow<A>(y);
  }
}

// The epilogue of 16 columns of a row, executed by half a warp.
template <class A>
__device__ void Finish(const ProductArgs& a, int row, int column, const RowNorm& norm, float y) {
  const size_t place = static_cast<size_t>(row) * a.matrix.n + column;
  if (a.matrix.scale != nullptr) y *= a.matrix.scale[column];
  y *= a.scale;
  if (a.matrix.bias != nullptr) y += a.matrix.bias[column];
  switch (a.result) {
    case kStore: {
      A* out = static_cast<A*>(a.out) + place;
      y = Activated(a.activation, y);
      *out = Narrow<A>(a.multiply != 0 ? y * Widen(*out) : y);
      break;
    }
    case kAdd: {
      const float x = a.in.x[place];
      y += a.norm_residual != 0 ? Normalized(a.norm, norm, column, x) : x;
      a.sum.x[place] = y;
      const Spread spread = SpreadOf(y);
      if (threadIdx.x % 16 == 0) a.sum.spread[place / 16] = spread;
      break;
    }
    case kCache:
      ToCache<A>(a, row, column, y);
      break;
    case kLogits:
      a.sum.x[place] = y;
      break;
  }
}

// Computes the sums of this warp's slice of k. x: the input if no norm is fused; weight: this
// lane's part of the first 16 inputs of the tile.
template <class W, class A, int kTiles, bool kNorm>
__device__ void SumSlice(const ProductArgs& a, const A* x, const W* weight, int first_row,
                         ProductShared<A, kTiles>* s, Sums<A> (&sums)[kTiles]) {
  constexpr int kAhead = kTilesAhead<W>, kStride = ProductShared<A, kTiles>::kStride;
  const int warp = threadIdx.x / 32, k = a.matrix.k, steps = k / 16;
  const int begin = steps * warp / kWarps, end = steps * (warp + 1) / kWarps;
  Eight<W> ahead[kAhead];
  for (int i = 0; i < kAhead; ++i) {
    if (begin + i < end) ahead[i] = LoadEight(weight + (begin + i) * 256);
  }
  __syncthreads();
  for (int chunk = begin; chunk < end; chunk += kAhead) {
    CT2T_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      const int step = chunk + i;
      if (step >= end) break;
      const Eight<A> now = As<A>(ahead[i]);
      if (step + kAhead < end) ahead[i] = LoadEight(weight + (step + kAhead) * 256);
      if constexpr (kNorm) {
        for (int t = 0; t < kTiles; ++t) {
          Stage(a, first_row + 16 * t, step * 16, s->norm + 16 * t, s->staged[warp][t], kStride);
        }
        __syncwarp();
      }
      CT2T_UNROLL
      for (int t = 0; t < kTiles; ++t) {
        if constexpr (kNorm) {
          sums[t].Add(s->staged[warp][t], kStride, now);
        } else {
          sums[t].Add(x + static_cast<size_t>(16 * t) * k + step * 16, k, now);
        }
      }
      if constexpr (kNorm) __syncwarp();
    }
  }
}

// A block computes 16 columns of 16 * kTiles rows, then the next ones. kNorm: the input is `in`,
// normalized; else it is `x`.
template <class W, class A, int kTiles, bool kNorm>
__device__ void Product(const ProductArgs& a) {
  using Memory = ProductShared<A, kTiles>;
  static_assert(sizeof(Memory) == ProductSharedBytes(sizeof(A) == 4, kTiles), "see args.h");
  auto& s = Shared<Memory>();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, k = a.matrix.k;
  const int first_row = blockIdx.y * 16 * kTiles;
  const bool needs_norm = kNorm || a.norm_residual != 0;
  for (int r = warp; needs_norm && r < 16 * kTiles; r += kWarps) {
    const size_t row = SourceRow(a, first_row + r);
    const int width = kNorm ? k : a.matrix.n;
    const RowNorm norm = NormOf(a.norm, a.in.spread + row * (width / 16), width);
    if (lane == 0) s.norm[r] = norm;
  }
  const A* x = static_cast<const A*>(a.x) + static_cast<size_t>(first_row) * k;
  for (int tile = blockIdx.x; tile < a.matrix.n / 16; tile += gridDim.x) {
    const W* weight =
        static_cast<const W*>(a.matrix.weight) + static_cast<size_t>(tile) * 16 * k + lane * 8;
    Sums<A> sums[kTiles];
    SumSlice<W, A, kTiles, kNorm>(a, x, weight, first_row, &s, sums);
    if constexpr (kNorm) __syncthreads();  // sums use the memory of staged rows
    for (int t = 0; t < kTiles; ++t) sums[t].Store(s.sums[warp][t]);
    __syncthreads();
    const int place = threadIdx.x, r = place / 16, column = tile * 16 + place % 16;
    CT2T_NO_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      float y = s.sums[0][t][place];
      for (int w = 1; w < kWarps; ++w) y += s.sums[w][t][place];
      Finish<A>(a, first_row + 16 * t + r, column, s.norm[16 * t + r], y);
    }
  }
}

}  // namespace ct2triton::gpu
