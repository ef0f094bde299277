// SPDX-License-Identifier: Apache-2.0
// Embeddings, alignments, and packing of matrices into tiles.
#pragma once

#include "choice.cuh"
#include "numbers.cuh"

namespace ct2triton::gpu {

constexpr int kEmbedThreads = 256;

template <class W>
__device__ float EmbeddingAt(const Matrix& m, int id, int column) {
  const W* weight = static_cast<const W*>(m.weight);
  const float x = Widen(weight[PackedPlace<W>(id, column, m.k)]);
  return m.scale == nullptr ? x : x * m.scale[id];
}

// One block per row. The width is a multiple of 16.
template <class W>
__device__ void Embed(const EmbedArgs& a) {
  const int row = blockIdx.x, width = a.embedding.k, sequence = a.rows.sequence[row];
  Next now = {a.rows.token[row], a.rows.position[row]};
  if (now.position == kFollows) now = a.next[sequence];
  const int position = now.position;
  const bool runs = position >= 0;
  const bool zero = a.prompt != nullptr && runs && position < max(a.prompt[sequence], 1);
  float* x = a.out.x + static_cast<size_t>(row) * width;
  Spread* spread = a.out.spread + static_cast<size_t>(row) * (width / 16);
  for (int c = threadIdx.x; c < width; c += kEmbedThreads) {
    float y = runs && !zero ? EmbeddingAt<W>(a.embedding, now.token, c) * a.scale : 0;
    if (runs && a.position != nullptr) y += a.position[static_cast<size_t>(position) * width + c];
    x[c] = y;
  }
  __syncthreads();
  const auto spread_all = [&] {
    for (int part = threadIdx.x / 16; part < (width / 16 + 1) / 2 * 2; part += kEmbedThreads / 16) {
      const int c = part * 16 + threadIdx.x % 16;
      const Spread own = SpreadOf(c < width ? x[c] : 0.F);
      if (threadIdx.x % 16 == 0 && c < width) spread[part] = own;
    }
  };
  spread_all();
  if (a.norm.gamma != nullptr) {
    __syncthreads();
    const RowNorm norm = NormOf(a.norm, spread, width);
    __syncthreads();
    for (int c = threadIdx.x; c < width; c += kEmbedThreads)
      x[c] = Normalized(a.norm, norm, c, x[c]);
    __syncthreads();
    spread_all();
  }
  if (threadIdx.x != 0 || a.slots == nullptr) return;
  a.rows.token[row] = now.token;
  a.rows.position[row] = position;
  a.rows.slot[row] = runs ? a.slots[static_cast<size_t>(sequence) * a.slots_stride + position] : -1;
}

// The source position with the most attention in a step: the first of equal ones. In one warp.
__device__ inline void Align(const AlignArgs& a) {
  const int output = blockIdx.x, row = a.output_rows[output];
  if (a.rows.position[row] < 0) return;
  const Rule& rule = a.rules[a.rows.sequence[row]];
  Ranked most = {-1, 0};
  for (int i = threadIdx.x; i < rule.sources; i += 32) {
    float sum = 0;
    for (int h = 0; h < a.count; ++h) {
      const size_t line = static_cast<size_t>(row) * a.all_heads + a.heads[h];
      sum += a.weights[line * a.stride + rule.first_source + i];
    }
    if (sum > most.value) most = {sum, i};
  }
  most = FirstOfWarp(most);
  if (threadIdx.x != 0) return;
  a.chosen[output].aligned = most.output;
  a.chosen[output].alignment_weight = most.value / a.count;
}

__device__ inline float NumberAt(const void* from, int kind, size_t i) {
  switch (kind) {
    case kFloat16:
      return Widen(static_cast<const Half*>(from)[i]);
    case kBfloat16:
      return Widen(static_cast<const Bfloat*>(from)[i]);
    case kInt8:
      return Widen(static_cast<const signed char*>(from)[i]);
    default:
      return static_cast<const float*>(from)[i];
  }
}

template <class W>
__device__ void PackRow(const PackArgs& a, int row, int source) {
  for (int c = threadIdx.x; c < a.k; c += blockDim.x) {
    const size_t place =
        a.from_tiles != 0 ? PackedPlace<W>(source, c, a.k) : static_cast<size_t>(source) * a.k + c;
    const float x = source < 0 ? 0 : NumberAt(a.from, a.from_kind, place);
    W* to = static_cast<W*>(a.to) + PackedPlace<W>(row, c, a.k);
    if constexpr (sizeof(W) == 1) {
      *to = static_cast<W>(x);
    } else {
      *to = Narrow<W>(x);
    }
  }
}

// One block per row of the matrix; rows beyond the last are filled with zeros.
__device__ inline void Pack(const PackArgs& a) {
  const int row = blockIdx.x;
  const int source = row >= a.n ? -1 : a.rows == nullptr ? row : a.rows[row];
  switch (a.to_kind) {
    case kFloat16:
      return PackRow<Half>(a, row, source);
    case kBfloat16:
      return PackRow<Bfloat>(a, row, source);
    case kInt8:
      return PackRow<signed char>(a, row, source);
    default:
      return PackRow<float>(a, row, source);
  }
}

__device__ inline void Gather(const GatherArgs& a) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a.padded) a.to[i] = i < a.n ? a.from[a.rows == nullptr ? i : a.rows[i]] : 0;
}

}  // namespace ct2triton::gpu
