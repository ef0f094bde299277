// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/compute/cache_pool.h"
#include "engine/compute/cpu/layer_pass.h"
#include "engine/compute/step_sequence.h"
#include "engine/model/stack_shape.h"

namespace ct2triton {

// Keys and values of every layer of a decoder.
class HostCache {
 public:
  HostCache(CacheBlock block, size_t layer_floats)
      : block_(std::move(block)), layer_floats_(layer_floats) {}

  // Of a layer, [tokens, width]: keys and values are separate, because attention reads all keys and
  // then all values.
  float* keys(size_t layer) const { return block_.data() + layer * layer_floats_; }
  float* values(size_t layer) const { return keys(layer) + layer_floats_ / 2; }

 private:
  const CacheBlock block_;
  const size_t layer_floats_;
};

// Of a row, by slot.
class HostRowCache final : public RowCache, public HostCache {
  using HostCache::HostCache;
};

// Of an encoded source.
class HostSource final : public EncodedSource, public HostCache {
 public:
  HostSource(CacheBlock block, size_t tokens, size_t layer_floats)
      : EncodedSource(tokens), HostCache(std::move(block), layer_floats) {}
};

// Runs tokens of many rows through a decoder, each row at its own position.
class DecoderStep final : private LayerPass {
 public:
  // The shape: of the decoder.
  DecoderStep(const LayerStack& stack, const DecoderShape& shape)
      : LayerPass(stack), decoder_(shape) {}

  // Changes only the caches, from `position` on, where it writes the tokens' keys and values, so a
  // failed step can be run again. Returns the input of the projection, [outputs of all rows,
  // width], in order of the rows; valid until the next call. Throws what the products throw.
  const float* Run(const std::vector<StepSequence>& rows);

 private:
  std::vector<LayerStack::Token> TokensOf(const std::vector<StepSequence>& rows) const;
  void AttendToSelf(size_t layer, const float* projected, float* out) override;
  void AttendToSource(size_t layer, const float* queries, float* out) override;
  QueryAttention CallOf(float scale) const;
  void AttendAndNote(QueryAttention call, size_t slot, RowAlignment* alignment);
  void Attend();
  const float* Output(const float* hidden);

  const DecoderShape& decoder_;
  const std::vector<StepSequence>* rows_ = nullptr;  // of this step
  size_t most_keys_ = 0;                             // of a token, in this step
  std::vector<QueryAttention> calls_;                // of a layer, by token; without scores
  FloatBuffer scores_;                               // [members of the team, heads, most_keys_]
};

}  // namespace ct2triton
