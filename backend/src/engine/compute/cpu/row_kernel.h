// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/compute/cpu/row_functions.h"

namespace ct2triton {

// Bias of attention scores by the distance from query to key: [heads, 2 * last + 1], from -last
// (key before the query) to last. Greater distances count as these.
struct DistanceBias {
  const float* table;  // null: no bias
  size_t last;

  // Without the heads before `head`.
  DistanceBias From(size_t head) const {
    return {table == nullptr ? nullptr : table + head * (2 * last + 1), last};
  }
  // Of the key at `token` for the query at `position`.
  size_t Index(size_t token, size_t position) const {
    if (token >= position) return last + (token - position < last ? token - position : last);
    return position - token < last ? last - (position - token) : 0;
  }
};

// Attention of one query to the keys and values of one row. Rows have separate keys and values, so
// different lengths need neither padding nor masks.
struct QueryAttention {
  const float* query;    // [heads, head_dim]
  const float* keys;     // token t: keys + t * stride, [heads, head_dim]
  const float* values;   // token t: values + t * stride, [heads, head_dim]
  size_t stride;         // floats from one token to the next
  const int32_t* slots;  // token t is stored at slots[t]; null: at t
  size_t tokens;         // at least 1
  size_t heads;
  size_t head_dim;
  float scale;  // of the products of query and keys
  DistanceBias bias;
  size_t position;  // of the query, for the bias
  float* scores;    // heads * tokens floats; receives the weights of the values
  float* out;       // [heads, head_dim]
};

// Heads whose products are computed together if there are so many: threads that share the heads of
// a query must not divide such groups, because that would change bits.
constexpr size_t kHeadGroup = 4;

// Attention of all tokens of a row to each other. Bit-identical to `attend` for each token.
struct RowAttention {
  const float* projected;  // token t: projected + 3 * t * width: its query, key and value
  size_t tokens;           // at least 1
  size_t heads;
  size_t head_dim;  // width / heads
  float scale;
  DistanceBias bias;
  float* scratch;  // RowScratchFloats()
  float* out;      // [tokens, width]

  size_t width() const { return heads * head_dim; }
};
// Scratch for the scores of a group of heads or queries, and copies of one head's keys and values.
constexpr size_t RowScratchFloats(size_t tokens, size_t head_dim) {
  return tokens * (kHeadGroup + 2 * head_dim);
}

// The functions of decode loops for one row at a time, for one instruction set.
struct RowKernel {
  const char* name;
  void (*attend)(const QueryAttention& call);
  // For the heads from `first` to `end`. Threads share them by groups of kHeadGroup.
  void (*attend_row)(const RowAttention& row, size_t first, size_t end);
  // Position of the first of the largest values; 0 where a value is NaN.
  size_t (*first_maximum)(const float* values, size_t count);
  const RowFunctions* rows;
};

// The fastest that this processor supports within MostInstructions()
// (engine/compute/cpu/processor.h). Throws what MostInstructions() throws.
const RowKernel& FastestRowKernel();

// "plain", "avx2", "avx512". Throws Error(kInvalidArgument) for names not in RowKernelNames().
const RowKernel& RowKernelNamed(const std::string& name);
// Names of the kernels that FastestRowKernel() chooses from, fastest first.
std::vector<std::string> RowKernelNames();

// Each in a file of its own.
extern const RowKernel kPlainRowKernel;
extern const RowKernel kAvx2RowKernel;
extern const RowKernel kAvx512RowKernel;

}  // namespace ct2triton
