// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/layer_stack.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ct2triton {
namespace {

Norm MakeNorm(const LayerStack::Parts& parts, const std::string& scope) {
  return {parts.file, scope, parts.epsilon, *parts.kernel.rows};
}

}  // namespace

LayerStack::LayerStack(const StackShape& shape, const Parts& parts, Embeddings embeddings)
    : shape_(shape), row_kernel_(parts.kernel), embeddings_(std::move(embeddings)) {
  if (shape_.bias_max_distance > 0) {
    bias_ = BiasByDistance(parts.file.Floats(shape_.BiasName()), shape_.heads,
                           shape_.bias_max_distance, /*encoder=*/shape_.side == "encoder");
  } else {
    positions_.emplace(parts.file.Floats(shape_.side + '/' + "position_encodings/encodings"),
                       shape_.width);
  }
  if (shape_.embedding_norm) {
    embedding_norm_ = MakeNorm(parts, shape_.side + "/layernorm_embedding");
  }
  if (shape_.output_norm) output_norm_ = MakeNorm(parts, shape_.side + "/layer_norm");
  for (size_t layer = 0; layer < shape_.layers; ++layer) {
    layers_.push_back(MakeLayer(parts, shape_.LayerScope(layer)));
  }
}

AttentionLayers LayerStack::MakeAttention(const Parts& parts, const std::string& scope,
                                          bool to_source) const {
  // CTranslate2's default depends on the width of the output, not on that of a head.
  const auto head_share = static_cast<float>(shape_.width / shape_.heads);
  const double scale = parts.file.Attribute(scope + "/queries_scale", 1 / std::sqrt(head_share));
  return {MakeNorm(parts, scope + "/layer_norm"), parts.linear({scope + "/linear_0"}),
          to_source ? parts.linear({scope + "/linear_1"}) : nullptr,
          parts.linear({scope + (to_source ? "/linear_2" : "/linear_1")}),
          static_cast<float>(scale)};
}

Layer LayerStack::MakeLayer(const Parts& parts, const std::string& scope) const {
  Layer layer = {MakeAttention(parts, scope + "self_attention", /*to_source=*/false),
                 std::nullopt,
                 {MakeNorm(parts, scope + "ffn/layer_norm"),
                  parts.linear({scope + "ffn/linear_0", shape_.activation}),
                  shape_.gated ? parts.linear({scope + "ffn/linear_0_noact"}) : nullptr,
                  parts.linear({scope + "ffn/linear_1"})}};
  if (shape_.side == "decoder") {
    layer.source = MakeAttention(parts, scope + "attention", /*to_source=*/true);
  }
  return layer;
}

void LayerStack::Embed(const Token& token, float* out) const {
  if (token.is_zero) {
    std::fill(out, out + shape_.width, 0.0F);
  } else {
    embeddings_.Get(token.id, out);
    const float scale = shape_.embedding_scale;
    if (scale != 1) {
      for (size_t i = 0; i < shape_.width; ++i) out[i] *= scale;
    }
  }
  if (positions_) positions_->Add(token.position, out);
}

}  // namespace ct2triton
