// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/compute/cpu/float_buffer.h"
#include "engine/compute/cpu/layer_stack.h"

namespace ct2triton {

// Runs tokens of many rows through a stack of layers at once: the products take all tokens
// together, one after the other, and attention goes row by row, without padding. So a row never
// depends on the others. Holds room for intermediate results, so it is one thread's.
class LayerPass {
 public:
  explicit LayerPass(const LayerStack& stack) : stack_(stack) {}
  virtual ~LayerPass() = default;
  LayerPass(const LayerPass&) = delete;
  LayerPass& operator=(const LayerPass&) = delete;

 protected:
  // The tokens' embeddings go through all layers. Gives [tokens, width], without the last norm;
  // valid until the next call. Throws what the products throw.
  const float* RunLayers(const std::vector<LayerStack::Token>& tokens);

  // Attention of a layer for all tokens. projected: [tokens, query and key and value], or queries
  // alone for the source; out: [tokens, heads_width].
  virtual void AttendToSelf(size_t layer, const float* projected, float* out) = 0;
  virtual void AttendToSource(size_t layer, const float* queries, float* out) = 0;

  const LayerStack& stack() const { return stack_; }
  const StackShape& shape() const { return stack_.shape(); }
  // At least as many floats, which the layers do not need any more once they have run.
  float* Spare() { return between_.data(); }

 private:
  void Embed(const std::vector<LayerStack::Token>& tokens);
  void RunLayer(size_t index);
  void FeedForward(const FeedForwardLayers& layers);
  // Into a sublayer and out of it again, with a norm before the one or after the other.
  const float* Enter(const Norm& norm);
  void Leave(const Linear& last, const float* in, const Norm& norm);

  const LayerStack& stack_;
  size_t tokens_ = 0;  // of this run
  FloatBuffer hidden_, between_, normalized_, projected_, context_, inner_, gate_;
};

}  // namespace ct2triton
