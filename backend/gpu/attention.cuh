// SPDX-License-Identifier: Apache-2.0
// Attention of a token to earlier tokens of its row (self) or to the source, by slots of the cache.
#pragma once

#include "numbers.cuh"

namespace ct2triton::gpu {

constexpr int kThreads = 128;  // per block of an attention

struct AttentionShared {
  float parts[kThreads * 8];
  float of_warp[kThreads / 32];
  float scores[1];  // one per token; the launch sets the size
};

// The maximum or the sum of `x` over all threads of the block.
template <bool kMaximum>
__device__ float OfBlock(float x, float* of_warp) {
  x = kMaximum ? MostOf<32>(x) : SumOf<32>(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  x = of_warp[0];
  for (int w = 1; w < static_cast<int>(blockDim.x) / 32; ++w) {
    x = kMaximum ? fmaxf(x, of_warp[w]) : x + of_warp[w];
  }
  return x;
}

// The relative position bias that is added to the score of the token at `t`.
__device__ inline float BiasOf(const AttentionArgs& a, int head, int row, int t) {
  if (a.bias == nullptr) return 0;
  const int position = a.rows.position[row];
  int distance = position - t;
  if (a.prompt != nullptr) {
    const int prompt = a.prompt[a.rows.sequence[row]];
    if (position < prompt) distance += prompt - 1;
  }
  distance = max(-a.bias_last, min(distance, a.bias_last));
  return a.bias[head * (2 * a.bias_last + 1) + a.bias_last - distance];
}

// What a thread of an attention works on. A block computes one head of one row. A group of `lanes`
// lanes reads a key, eight numbers each; lanes beyond the head's width read nothing.
struct AttentionThread {
  __device__ AttentionThread(const AttentionArgs& a, int position)
      : row(static_cast<int>(blockIdx.y)),
        sequence(a.rows.sequence[row]),
        tokens(a.count == nullptr ? position + 1 : a.count[sequence]),
        groups(kThreads / a.lanes),
        group(static_cast<int>(threadIdx.x) / a.lanes),
        place(static_cast<int>(threadIdx.x) % a.lanes * 8),
        own(static_cast<int>(blockIdx.x) * a.dim + place),
        has_part(place < a.dim) {}

  // This thread's part of the key at t; the value follows one row width later.
  template <class A>
  __device__ const A* Key(const AttentionArgs& a, int t) const {
    const int* table = a.table + static_cast<size_t>(sequence) * a.table_stride;
    return SlotOf<A>(a.cache, table[t >> a.shift] + (t & ((1 << a.shift) - 1))) + own;
  }

  int row, sequence, tokens, groups, group, place, own;
  bool has_part;
};

// Computes this thread's scores and returns the largest.
template <class A>
__device__ float Score(const AttentionArgs& a, const AttentionThread& is, float* scores) {
  Eight<A> query = {};
  if (is.has_part) {
    const size_t first = static_cast<size_t>(is.row) * a.query_stride;
    query = LoadEight(static_cast<const A*>(a.query) + first + is.own);
  }
  float most = kLowest;
  for (int first = 0; first < is.tokens; first += is.groups) {
    const int t = first + is.group;
    float score = 0;
    if (t < is.tokens && is.has_part) {
      const Eight<A> key = LoadEight(is.Key<A>(a, t));
      for (int i = 0; i < 8; ++i) score = __fmaf_rn(Widen(query.of[i]), Widen(key.of[i]), score);
    }
    for (int i = a.lanes / 2; i > 0; i /= 2) score += __shfl_xor_sync(~0U, score, i);
    if (t < is.tokens) {
      score = score * a.scale + BiasOf(a, blockIdx.x, is.row, t);
      if (is.place == 0) scores[t] = score;
      most = fmaxf(most, score);
    }
  }
  return most;
}

template <class A>
__device__ void Attention(const AttentionArgs& a) {
  static_assert(sizeof(AttentionShared) == AttentionSharedBytes(1), "see args.h");
  auto& s = Shared<AttentionShared>();
  const int head = blockIdx.x, width = a.heads * a.dim;
  const int position = a.rows.position[blockIdx.y];
  if (position < 0) return;
  const AttentionThread is(a, position);
  const float most = OfBlock<true>(Score<A>(a, is, s.scores), s.of_warp);
  float total = 0;
  for (int t = threadIdx.x; t < is.tokens; t += kThreads) {
    s.scores[t] = expf(s.scores[t] - most);
    total += s.scores[t];
  }
  total = OfBlock<false>(total, s.of_warp);
  for (int t = threadIdx.x; a.weights != nullptr && t < is.tokens; t += kThreads) {
    const size_t line = static_cast<size_t>(is.row) * a.heads + head;
    a.weights[line * a.most_tokens + t] = s.scores[t] / total;
  }
  float out[8] = {};
  for (int t = is.group; t < is.tokens && is.has_part; t += is.groups) {
    const Eight<A> value = LoadEight(is.Key<A>(a, t) + width);
    for (int i = 0; i < 8; ++i) out[i] = __fmaf_rn(s.scores[t], Widen(value.of[i]), out[i]);
  }
  for (int i = 0; is.has_part && i < 8; ++i) s.parts[is.group * a.dim + is.place + i] = out[i];
  __syncthreads();
  for (int d = threadIdx.x; d < a.dim; d += kThreads) {
    float sum = 0;
    for (int g = 0; g < is.groups; ++g) sum += s.parts[g * a.dim + d];
    static_cast<A*>(a.out)[static_cast<size_t>(is.row) * width + head * a.dim + d] =
        Narrow<A>(sum / total);
  }
}

}  // namespace ct2triton::gpu
