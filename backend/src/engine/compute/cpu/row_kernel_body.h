// SPDX-License-Identifier: Apache-2.0
//
// The kernel of a row, written once in terms of `Lanes`: a register of kWidth floats and its
// operations. row_kernel_*.cc include this with their own Lanes, after defining the target
// processor (KERNEL_TARGET). Everything is in an unnamed namespace, so that no file gets the code
// of another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/compute/cpu/exponential.h"
#include "engine/compute/cpu/row_kernel.h"

namespace ct2triton {
namespace {

template <typename Lanes>
KERNEL_TARGET float Dot(const float* a, const float* b, size_t count) {
  auto sum = Lanes::Set(0);
  size_t i = 0;
  for (; i + Lanes::kWidth <= count; i += Lanes::kWidth) {
    sum = Lanes::MultiplyAdd(Lanes::Load(a + i), Lanes::Load(b + i), sum);
  }
  if (i < count) {
    const size_t rest = count - i;
    sum = Lanes::MultiplyAdd(Lanes::LoadPart(a + i, rest), Lanes::LoadPart(b + i, rest), sum);
  }
  return Lanes::Sum(sum);
}

// Head size of known models; code for it is unrolled.
constexpr size_t kUsualDim = 64;

// Dot products of four pairs of heads of the usual size, `stride` floats apart. Their sums are
// independent, and are reduced across lanes together.
template <typename Lanes>
KERNEL_TARGET inline void FourDots(const float* a, size_t a_step, const float* b, size_t b_step,
                                   float* out) {
  typename Lanes::Register sums[4];
  for (size_t k = 0; k < 4; ++k, a += a_step, b += b_step) {
    sums[k] = Lanes::Multiply(Lanes::Load(a), Lanes::Load(b));
    auto other = Lanes::Multiply(Lanes::Load(a + Lanes::kWidth), Lanes::Load(b + Lanes::kWidth));
    for (size_t i = 2 * Lanes::kWidth; i < kUsualDim; i += 2 * Lanes::kWidth) {
      const size_t next = i + Lanes::kWidth;
      sums[k] = Lanes::MultiplyAdd(Lanes::Load(a + i), Lanes::Load(b + i), sums[k]);
      other = Lanes::MultiplyAdd(Lanes::Load(a + next), Lanes::Load(b + next), other);
    }
    sums[k] = Lanes::Add(sums[k], other);
  }
  Lanes::FourSums(sums, out);
}

// e to the power of each value, none of which is above 0.
template <typename Lanes>
KERNEL_TARGET typename Lanes::Register ExpValues(typename Lanes::Register x) {
  const auto e = Exp<Lanes>(Lanes::Max(x, Lanes::Set(-87)));
  return Lanes::TimesPowerOfTwo(e.fraction, e.octaves);
}

template <typename Lanes>
KERNEL_TARGET inline float Largest(const float* values, size_t count) {
  float largest = values[0];
  size_t i = 0;
  if (count >= Lanes::kWidth) {
    auto most = Lanes::Set(largest);
    for (; i + Lanes::kWidth <= count; i += Lanes::kWidth) {
      most = Lanes::Max(Lanes::Load(values + i), most);
    }
    float lanes[Lanes::kWidth];
    Lanes::Store(lanes, most);
    largest = *std::max_element(lanes, lanes + Lanes::kWidth);
  }
  for (; i < count; ++i) largest = std::max(largest, values[i]);
  return largest;
}

// Turns the scores of one head into weights that add up to 1.
template <typename Lanes>
KERNEL_TARGET void Softmax(float* scores, size_t count) {
  const float largest = Largest<Lanes>(scores, count);
  const auto shift = Lanes::Set(-largest);
  auto sums = Lanes::Set(0);
  size_t i = 0;
  for (; i + Lanes::kWidth <= count; i += Lanes::kWidth) {
    const auto weight = ExpValues<Lanes>(Lanes::Add(Lanes::Load(scores + i), shift));
    Lanes::Store(scores + i, weight);
    sums = Lanes::Add(sums, weight);
  }
  float sum = Lanes::Sum(sums);
  if (i < count) {
    float rest[Lanes::kWidth] = {};
    std::copy(scores + i, scores + count, rest);
    Lanes::Store(rest, ExpValues<Lanes>(Lanes::Add(Lanes::Load(rest), shift)));
    for (size_t k = 0; i < count; ++i, ++k) sum += scores[i] = rest[k];
  }
  const float share = 1 / sum;
  for (size_t k = 0; k < count; ++k) scores[k] *= share;
}

// Index of a token in the cache.
struct InOrder {
  size_t operator()(size_t token) const { return token; }
};
struct BySlot {
  const int32_t* slots;
  size_t operator()(size_t token) const { return static_cast<size_t>(slots[token]); }
};

// `Blocks` registers of the output of each of `Heads` heads at once: the values of a token are read
// in order. weights: [Heads, tokens]; values, out: of the first head.
template <typename Lanes, size_t Heads, size_t Blocks, typename Place>
KERNEL_TARGET void WeighBlocks(const QueryAttention& call, Place place, const float* weights,
                               const float* values, float* out) {
  typename Lanes::Register sums[Heads][Blocks];
  for (auto& head : sums) {
    for (auto& sum : head) sum = Lanes::Set(0);
  }
  for (size_t t = 0; t < call.tokens; ++t) {
    const float* value = values + place(t) * call.stride;
    for (size_t h = 0; h < Heads; ++h, value += call.head_dim) {
      const auto weight = Lanes::Set(weights[h * call.tokens + t]);
      for (size_t block = 0; block < Blocks; ++block) {
        const auto part = Lanes::Load(value + block * Lanes::kWidth);
        sums[h][block] = Lanes::MultiplyAdd(weight, part, sums[h][block]);
      }
    }
  }
  for (size_t h = 0; h < Heads; ++h, out += call.head_dim) {
    for (size_t block = 0; block < Blocks; ++block) {
      Lanes::Store(out + block * Lanes::kWidth, sums[h][block]);
    }
  }
}

// Registers of an output that are summed at once.
constexpr size_t kBlocks = 4;

// The sum of the values of one head, each times its weight.
template <typename Lanes, typename Place>
KERNEL_TARGET void Weigh(const QueryAttention& call, Place place, const float* weights,
                         const float* values, float* out) {
  size_t i = 0;
  for (; i + kBlocks * Lanes::kWidth <= call.head_dim; i += kBlocks * Lanes::kWidth) {
    WeighBlocks<Lanes, 1, kBlocks>(call, place, weights, values + i, out + i);
  }
  for (; i + Lanes::kWidth <= call.head_dim; i += Lanes::kWidth) {
    WeighBlocks<Lanes, 1, 1>(call, place, weights, values + i, out + i);
  }
  if (i == call.head_dim) return;
  const size_t rest = call.head_dim - i;
  auto sum = Lanes::Set(0);
  for (size_t t = 0; t < call.tokens; ++t) {
    const auto value = Lanes::LoadPart(values + place(t) * call.stride + i, rest);
    sum = Lanes::MultiplyAdd(Lanes::Set(weights[t]), value, sum);
  }
  float sums[Lanes::kWidth];
  Lanes::Store(sums, sum);
  std::copy(sums, sums + rest, out + i);
}

// The products of one token's key with the query, [heads].
template <typename Lanes>
KERNEL_TARGET inline void Products(const QueryAttention& call, const float* key, float* products) {
  const size_t dim = call.head_dim;
  size_t h = 0;
  if (dim == kUsualDim) {
    for (; h + kHeadGroup <= call.heads; h += kHeadGroup) {
      FourDots<Lanes>(call.query + h * dim, dim, key + h * dim, dim, products + h);
    }
  }
  for (; h < call.heads; ++h) {
    products[h] = Dot<Lanes>(call.query + h * dim, key + h * dim, dim);
  }
}

// Values are read once all scores are known. The first are prefetched; the processor
// prefetches the following ones itself.
constexpr size_t kTokensAhead = 16;

inline void Prefetch(const float* values, size_t count) {
  constexpr size_t kFloatsPerLine = 16;
  for (size_t i = 0; i < count; i += kFloatsPerLine) __builtin_prefetch(values + i, 0, 2);
}

// The scores of all heads, token by token, because the keys of all heads of a token are stored
// together.
template <typename Lanes, typename Place>
KERNEL_TARGET void Score(const QueryAttention& call, Place place) {
  const size_t heads = call.heads;
  const size_t tokens = call.tokens;
  const float scale = call.scale;
  float* products = call.out;
  for (size_t t = 0; t < tokens; ++t) {
    Products<Lanes>(call, call.keys + place(t) * call.stride, products);
    if (t < kTokensAhead) {
      Prefetch(call.values + place(t) * call.stride, heads * call.head_dim);
    }
    float* scores = call.scores + t;
    for (size_t h = 0; h < heads; ++h) scores[h * tokens] = products[h] * scale;
    if (call.bias.table == nullptr) continue;
    const float* bias = call.bias.table + call.bias.Index(t, call.position);
    for (size_t h = 0; h < heads; ++h) scores[h * tokens] += bias[h * (2 * call.bias.last + 1)];
  }
}

// The values of all heads, each times its weight.
template <typename Lanes, typename Place>
KERNEL_TARGET void WeighHeads(const QueryAttention& call, Place place) {
  const size_t dim = call.head_dim;
  size_t h = 0;
  if (Lanes::kManyRegisters && dim == kBlocks * Lanes::kWidth) {
    for (; h + kHeadGroup <= call.heads; h += kHeadGroup) {
      WeighBlocks<Lanes, kHeadGroup, kBlocks>(call, place, call.scores + h * call.tokens,
                                              call.values + h * dim, call.out + h * dim);
    }
  }
  for (; h < call.heads; ++h) {
    Weigh<Lanes>(call, place, call.scores + h * call.tokens, call.values + h * dim,
                 call.out + h * dim);
  }
}

template <typename Lanes, typename Place>
KERNEL_TARGET void AttendAt(const QueryAttention& call, Place place) {
  Score<Lanes>(call, place);
  for (size_t h = 0; h < call.heads; ++h) {
    Softmax<Lanes>(call.scores + h * call.tokens, call.tokens);
  }
  WeighHeads<Lanes>(call, place);
}

template <typename Lanes>
KERNEL_TARGET void Attend(const QueryAttention& call) {
  if (call.slots == nullptr) {
    AttendAt<Lanes>(call, InOrder());
  } else {
    AttendAt<Lanes>(call, BySlot{call.slots});
  }
}

template <typename Lanes>
KERNEL_TARGET size_t FirstMaximum(const float* values, size_t count) {
  const float largest = Largest<Lanes>(values, count);
  size_t i = 0;
  for (; i + Lanes::kWidth <= count; i += Lanes::kWidth) {
    if (Lanes::AnyEqual(Lanes::Load(values + i), Lanes::Set(largest))) break;
  }
  for (; i < count; ++i) {
    if (values[i] == largest) return i;
  }
  return 0;
}

}  // namespace
}  // namespace ct2triton
