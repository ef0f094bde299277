// SPDX-License-Identifier: Apache-2.0
//
// Attention of all tokens of a row to each other, in terms of `Lanes`, see row_kernel_body.h. Each
// key and value is read for four queries at once, because for one query at a time, the keys and
// values of a long row would come from a slower cache. Each query has its own sums, in the order of
// Attend.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/compute/cpu/row_kernel_body.h"

namespace ct2triton {
namespace {

constexpr size_t kQueries = 4;

// One head of some tokens; `stride`: floats from one token to the next.
struct HeadOfTokens {
  const float* keys;
  const float* values;
  size_t step;
};

// In a long row, tokens are so far apart that those of a head map to few cache sets.
constexpr size_t kLongRow = 64;  // tokens

// Copies the keys and values of one head, so that tokens are adjacent.
inline HeadOfTokens CopyHead(const RowAttention& row, HeadOfTokens head, float* to) {
  float* keys = to;
  float* values = to + row.tokens * row.head_dim;
  for (size_t t = 0; t < row.tokens; ++t) {
    std::copy_n(head.keys + t * head.step, row.head_dim, keys + t * row.head_dim);
    std::copy_n(head.values + t * head.step, row.head_dim, values + t * row.head_dim);
  }
  return {keys, values, row.head_dim};
}

// scores: [kQueries, tokens].
template <typename Lanes>
KERNEL_TARGET void ScoreQueries(const RowAttention& row, const HeadOfTokens& head,
                                const float* queries, float* scores) {
  const size_t step = 3 * row.width();
  for (size_t t = 0; t < row.tokens; ++t) {
    float products[kQueries];
    FourDots<Lanes>(queries, step, head.keys + t * head.step, 0, products);
    for (size_t q = 0; q < kQueries; ++q) scores[q * row.tokens + t] = products[q] * row.scale;
  }
}

// `first`: of the queries. scores: [kQueries, tokens].
inline void AddBias(const RowAttention& row, size_t index, size_t first, float* scores) {
  const float* bias = row.bias.From(index).table;
  for (size_t q = 0; q < kQueries; ++q, scores += row.tokens) {
    for (size_t t = 0; t < row.tokens; ++t) scores[t] += bias[row.bias.Index(t, first + q)];
  }
}

// `Blocks` registers of the output of each query.
template <typename Lanes, size_t Blocks>
KERNEL_TARGET void WeighQueries(const RowAttention& row, const HeadOfTokens& head,
                                const float* weights, size_t first, float* out) {
  typename Lanes::Register sums[kQueries][Blocks];
  for (auto& query : sums) {
    for (auto& sum : query) sum = Lanes::Set(0);
  }
  for (size_t t = 0; t < row.tokens; ++t) {
    const float* value = head.values + t * head.step + first;
    for (size_t q = 0; q < kQueries; ++q) {
      const auto weight = Lanes::Set(weights[q * row.tokens + t]);
      for (size_t block = 0; block < Blocks; ++block) {
        const auto part = Lanes::Load(value + block * Lanes::kWidth);
        sums[q][block] = Lanes::MultiplyAdd(weight, part, sums[q][block]);
      }
    }
  }
  for (size_t q = 0; q < kQueries; ++q) {
    for (size_t block = 0; block < Blocks; ++block) {
      Lanes::Store(out + q * row.width() + first + block * Lanes::kWidth, sums[q][block]);
    }
  }
}

// One head of all tokens. The last queries overlap with those before; results are the same.
template <typename Lanes>
KERNEL_TARGET void AttendHead(const RowAttention& row, size_t index) {
  const size_t step = 3 * row.width();
  const float* queries = row.projected + index * row.head_dim;
  HeadOfTokens head = {queries + row.width(), queries + 2 * row.width(), step};
  float* scores = row.scratch;
  if (row.tokens >= kLongRow) head = CopyHead(row, head, scores + kQueries * row.tokens);
  for (size_t next = 0; next < row.tokens; next += kQueries) {
    const size_t token = std::min(next, row.tokens - kQueries);
    ScoreQueries<Lanes>(row, head, queries + token * step, scores);
    if (row.bias.table != nullptr) AddBias(row, index, token, scores);
    for (size_t q = 0; q < kQueries; ++q) Softmax<Lanes>(scores + q * row.tokens, row.tokens);
    float* out = row.out + token * row.width() + index * row.head_dim;
    constexpr size_t kBlocksAtOnce = Lanes::kManyRegisters ? 4 : 2;
    for (size_t i = 0; i < kUsualDim; i += kBlocksAtOnce * Lanes::kWidth) {
      WeighQueries<Lanes, kBlocksAtOnce>(row, head, scores, i, out);
    }
  }
}

// Rows and heads of other sizes: token by token.
template <typename Lanes>
KERNEL_TARGET void AttendEach(const RowAttention& row, size_t first, size_t end) {
  const float* projected = row.projected + first * row.head_dim;
  QueryAttention call{};
  call.keys = projected + row.width();
  call.values = projected + 2 * row.width();
  call.stride = 3 * row.width();
  call.tokens = row.tokens;
  call.heads = end - first;
  call.head_dim = row.head_dim;
  call.scale = row.scale;
  call.bias = row.bias.From(first);
  call.scores = row.scratch;
  for (size_t t = 0; t < row.tokens; ++t) {
    call.query = projected + t * call.stride;
    call.position = t;
    call.out = row.out + t * row.width() + first * row.head_dim;
    Attend<Lanes>(call);
  }
}

template <typename Lanes>
KERNEL_TARGET void AttendRow(const RowAttention& row, size_t first, size_t end) {
  const bool usual = row.head_dim == kUsualDim && row.heads % kHeadGroup == 0;
  if (!usual || row.tokens < kQueries) return AttendEach<Lanes>(row, first, end);
  for (size_t head = first; head < end; ++head) AttendHead<Lanes>(row, head);
}

}  // namespace
}  // namespace ct2triton
