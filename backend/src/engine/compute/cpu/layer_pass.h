// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/compute/cpu/float_buffer.h"
#include "engine/compute/cpu/layer_stack.h"

namespace ct2triton {

// Runs tokens of many rows through a stack of layers at once: products run on the concatenated
// tokens of all rows, and attention runs row by row, without padding. So a row never depends on
// other rows. Not thread-safe, because it holds intermediate results.
class LayerPass {
 public:
  explicit LayerPass(const LayerStack& stack) : stack_(stack) {}
  virtual ~LayerPass() = default;
  LayerPass(const LayerPass&) = delete;
  LayerPass& operator=(const LayerPass&) = delete;

 protected:
  // Runs the tokens' embeddings through all layers. Returns [tokens, width], before the last norm;
  // valid until the next call. Throws what the products throw.
  const float* RunLayers(const std::vector<LayerStack::Token>& tokens);

  // Attention of a layer for all tokens. projected: [tokens, query and key and value], or queries
  // alone for the source; out: [tokens, heads_width].
  virtual void AttendToSelf(size_t layer, const float* projected, float* out) = 0;
  virtual void AttendToSource(size_t layer, const float* queries, float* out) = 0;

  const LayerStack& stack() const { return stack_; }
  const StackShape& shape() const { return stack_.shape(); }
  // A buffer of at least this size that is free after the layers have run.
  float* Spare() { return between_.data(); }

 private:
  void Embed(const std::vector<LayerStack::Token>& tokens);
  void RunLayer(size_t index);
  void FeedForward(const FeedForwardLayers& layers);
  // Begin and end a sublayer. The norm is applied at one of the two.
  const float* Enter(const Norm& norm);
  void Leave(const Linear& last, const float* in, const Norm& norm);

  const LayerStack& stack_;
  size_t tokens_ = 0;  // of this run
  FloatBuffer hidden_, between_, normalized_, projected_, context_, inner_, gate_;
};

}  // namespace ct2triton
