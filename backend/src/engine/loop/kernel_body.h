// SPDX-License-Identifier: Apache-2.0
//
// The kernels, written once in terms of `Lanes`: a register of kWidth floats and what can be done
// with it. kernels_*.cc include this with their own Lanes, after they have said for which processor
// the functions are compiled (KERNEL_TARGET). All is in an unnamed namespace, so that no file gets
// the code of another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/loop/kernels.h"

#ifndef KERNEL_TARGET
#define KERNEL_TARGET
#endif

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

// e to the power of each value, none of which is above 0: a polynomial of degree 6 on half an
// octave, after Cephes; its error is about 1e-7 of the result.
template <typename Lanes>
KERNEL_TARGET typename Lanes::Register Exp(typename Lanes::Register x) {
  x = Lanes::Max(x, Lanes::Set(-87));
  const auto octaves = Lanes::Round(Lanes::Multiply(x, Lanes::Set(1.44269504088896341f)));
  // ln 2 in two parts, so that the product with the first is exact.
  x = Lanes::MultiplyAdd(octaves, Lanes::Set(-0.693359375f), x);
  x = Lanes::MultiplyAdd(octaves, Lanes::Set(2.12194440e-4f), x);
  auto y = Lanes::Set(1.9875691500e-4f);
  for (const float factor : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
                             5.0000001201e-1f, 1.0f, 1.0f}) {
    y = Lanes::MultiplyAdd(y, x, Lanes::Set(factor));
  }
  return Lanes::TimesPowerOfTwo(y, octaves);
}

// Turns the scores of one head into weights that add up to 1.
template <typename Lanes>
KERNEL_TARGET void Softmax(float* scores, size_t count) {
  float largest = scores[0];
  for (size_t i = 1; i < count; ++i) largest = std::max(largest, scores[i]);
  const auto shift = Lanes::Set(-largest);
  auto sums = Lanes::Set(0);
  size_t i = 0;
  for (; i + Lanes::kWidth <= count; i += Lanes::kWidth) {
    const auto weight = Exp<Lanes>(Lanes::Add(Lanes::Load(scores + i), shift));
    Lanes::Store(scores + i, weight);
    sums = Lanes::Add(sums, weight);
  }
  float sum = Lanes::Sum(sums);
  if (i < count) {
    float rest[Lanes::kWidth] = {};
    std::copy(scores + i, scores + count, rest);
    Lanes::Store(rest, Exp<Lanes>(Lanes::Add(Lanes::Load(rest), shift)));
    for (size_t k = 0; i < count; ++i, ++k) sum += scores[i] = rest[k];
  }
  const float share = 1 / sum;
  for (size_t k = 0; k < count; ++k) scores[k] *= share;
}

// Where a token lies.
struct InOrder {
  size_t operator()(size_t token) const { return token; }
};
struct BySlot {
  const int32_t* slots;
  size_t operator()(size_t token) const { return static_cast<size_t>(slots[token]); }
};

// `Blocks` registers of a head's output at once: the values of a token are read in order.
template <typename Lanes, size_t Blocks, typename Place>
KERNEL_TARGET void WeighBlocks(const AttentionCall& call, Place place, const float* weights,
                               const float* values, float* out) {
  typename Lanes::Register sums[Blocks];
  for (auto& sum : sums) sum = Lanes::Set(0);
  for (size_t t = 0; t < call.tokens; ++t) {
    const float* value = values + place(t) * call.stride;
    const auto weight = Lanes::Set(weights[t]);
    for (size_t block = 0; block < Blocks; ++block) {
      sums[block] =
          Lanes::MultiplyAdd(weight, Lanes::Load(value + block * Lanes::kWidth), sums[block]);
    }
  }
  for (size_t block = 0; block < Blocks; ++block) {
    Lanes::Store(out + block * Lanes::kWidth, sums[block]);
  }
}

// The sum of the values of one head, each times its weight.
template <typename Lanes, typename Place>
KERNEL_TARGET void Weigh(const AttentionCall& call, Place place, const float* weights,
                         const float* values, float* out) {
  constexpr size_t kBlocks = 4;
  size_t i = 0;
  for (; i + kBlocks * Lanes::kWidth <= call.head_dim; i += kBlocks * Lanes::kWidth) {
    WeighBlocks<Lanes, kBlocks>(call, place, weights, values + i, out + i);
  }
  for (; i + Lanes::kWidth <= call.head_dim; i += Lanes::kWidth) {
    WeighBlocks<Lanes, 1>(call, place, weights, values + i, out + i);
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

template <typename Lanes, typename Place>
KERNEL_TARGET void AttendAt(const AttentionCall& call, Place place) {
  // Token by token, since the keys of all heads of a token lie together.
  for (size_t t = 0; t < call.tokens; ++t) {
    const float* key = call.keys + place(t) * call.stride;
    const size_t distance = std::min(call.added_distance + call.tokens - 1 - t, call.last_distance);
    for (size_t h = 0; h < call.heads; ++h) {
      const size_t offset = h * call.head_dim;
      float score = Dot<Lanes>(call.query + offset, key + offset, call.head_dim) * call.scale;
      if (call.bias != nullptr) score += call.bias[h * (call.last_distance + 1) + distance];
      call.scores[h * call.tokens + t] = score;
    }
  }
  for (size_t h = 0; h < call.heads; ++h) {
    float* weights = call.scores + h * call.tokens;
    Softmax<Lanes>(weights, call.tokens);
    Weigh<Lanes>(call, place, weights, call.values + h * call.head_dim,
                 call.out + h * call.head_dim);
  }
}

template <typename Lanes>
KERNEL_TARGET void Attend(const AttentionCall& call) {
  if (call.slots == nullptr) {
    AttendAt<Lanes>(call, InOrder());
  } else {
    AttendAt<Lanes>(call, BySlot{call.slots});
  }
}

template <typename Lanes>
KERNEL_TARGET size_t FirstMaximum(const float* values, size_t count) {
  size_t i = 0;
  float largest = values[0];
  if (count >= Lanes::kWidth) {
    auto most = Lanes::Load(values);
    for (i = Lanes::kWidth; i + Lanes::kWidth <= count; i += Lanes::kWidth) {
      most = Lanes::Max(most, Lanes::Load(values + i));
    }
    float lanes[Lanes::kWidth];
    Lanes::Store(lanes, most);
    largest = *std::max_element(lanes, lanes + Lanes::kWidth);
  }
  for (; i < count; ++i) largest = std::max(largest, values[i]);
  for (i = 0; i + Lanes::kWidth <= count; i += Lanes::kWidth) {
    if (Lanes::AnyEqual(Lanes::Load(values + i), Lanes::Set(largest))) break;
  }
  for (; i < count; ++i) {
    if (values[i] == largest) return i;
  }
  return 0;
}

}  // namespace
}  // namespace ct2triton
