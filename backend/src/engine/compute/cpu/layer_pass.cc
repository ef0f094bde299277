// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/layer_pass.h"

#include <utility>

namespace ct2triton {

const float* LayerPass::RunLayers(const std::vector<LayerStack::Token>& tokens) {
  tokens_ = tokens.size();
  for (FloatBuffer* buffer : {&hidden_, &between_, &normalized_}) {
    buffer->Room(tokens_ * shape().width);
  }
  context_.Room(tokens_ * shape().heads_width);
  Embed(tokens);
  for (size_t layer = 0; layer < shape().layers; ++layer) RunLayer(layer);
  return hidden_.data();
}

void LayerPass::Embed(const std::vector<LayerStack::Token>& tokens) {
  float* embedding = hidden_.data();
  for (const auto& token : tokens) {
    stack_.Embed(token, embedding);
    embedding += shape().width;
  }
  if (const auto& norm = stack_.embedding_norm()) {
    norm->Apply(hidden_.data(), tokens_, hidden_.data());
  }
}

void LayerPass::RunLayer(size_t index) {
  const Layer& layer = stack_.layers()[index];
  float* projected = projected_.Room(tokens_ * layer.self.in->outputs());
  layer.self.in->Apply(Enter(layer.self.norm), tokens_, projected, nullptr);
  AttendToSelf(index, projected, context_.data());
  Leave(*layer.self.out, context_.data(), layer.self.norm);
  if (layer.source) {
    layer.source->in->Apply(Enter(layer.source->norm), tokens_, projected, nullptr);
    AttendToSource(index, projected, context_.data());
    Leave(*layer.source->out, context_.data(), layer.source->norm);
  }
  FeedForward(layer.feed_forward);
}

void LayerPass::FeedForward(const FeedForwardLayers& layers) {
  const float* in = Enter(layers.norm);
  const size_t size = tokens_ * layers.inner->outputs();
  float* inner = inner_.Room(size);
  layers.inner->Apply(in, tokens_, inner, nullptr);
  if (layers.gate) {
    float* gate = gate_.Room(size);
    layers.gate->Apply(in, tokens_, gate, nullptr);
    for (size_t i = 0; i < size; ++i) inner[i] *= gate[i];
  }
  Leave(*layers.outer, inner, layers.norm);
}

const float* LayerPass::Enter(const Norm& norm) {
  if (!shape().pre_norm) return hidden_.data();
  norm.Apply(hidden_.data(), tokens_, normalized_.data());
  return normalized_.data();
}

void LayerPass::Leave(const Linear& last, const float* in, const Norm& norm) {
  last.Apply(in, tokens_, between_.data(), hidden_.data());
  std::swap(hidden_, between_);
  if (!shape().pre_norm) norm.Apply(hidden_.data(), tokens_, hidden_.data());
}

}  // namespace ct2triton
