// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/compute/cpu/embeddings.h"
#include "engine/compute/cpu/linear.h"
#include "engine/compute/cpu/norm.h"
#include "engine/compute/cpu/positions.h"
#include "engine/compute/cpu/row_kernel.h"
#include "engine/model/stack_shape.h"

namespace ct2triton {

// One attention of a layer.
struct AttentionLayers {
  Norm norm;
  std::unique_ptr<Linear> in;    // to itself: queries, keys and values; to the source: queries
  std::unique_ptr<Linear> keys;  // to the source: keys and values, of the encoder's output
  std::unique_ptr<Linear> out;
  float scale;
};

struct FeedForwardLayers {
  Norm norm;
  std::unique_ptr<Linear> inner;  // activated
  std::unique_ptr<Linear> gate;   // null: none
  std::unique_ptr<Linear> outer;
};

struct Layer {
  AttentionLayers self;
  std::optional<AttentionLayers> source;  // only in a decoder
  FeedForwardLayers feed_forward;
};

// The encoder or the decoder of a model: embeddings and layers. Immutable and shared by threads.
class LayerStack {
 public:
  // The parts of a stack.
  struct Parts {
    const ModelFile& file;
    LinearMaker linear;
    std::optional<float> epsilon;  // of norms; none: CTranslate2's default
    const RowKernel& kernel;
  };
  // Throws Error(kUnsupported) if a variable does not match the shape.
  LayerStack(const StackShape& shape, const Parts& parts, Embeddings embeddings);
  LayerStack(const LayerStack&) = delete;
  LayerStack& operator=(const LayerStack&) = delete;

  const StackShape& shape() const { return shape_; }
  const RowKernel& row_kernel() const { return row_kernel_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const std::optional<Norm>& embedding_norm() const { return embedding_norm_; }
  const std::optional<Norm>& output_norm() const { return output_norm_; }
  // Bias of self-attention.
  DistanceBias bias() const {
    return {bias_.empty() ? nullptr : bias_.data(), shape_.bias_max_distance};
  }

  // Memory of its position encodings.
  size_t position_bytes() const { return positions_ ? positions_->bytes() : 0; }

  // A token to embed. The position must be a stored one, if the model stores positions.
  struct Token {
    int32_t id;
    size_t position;
    bool is_zero;  // except for its position encoding
  };
  // Scaled, with the position encoding, before the norm: [width].
  void Embed(const Token& token, float* out) const;

 private:
  AttentionLayers MakeAttention(const Parts& parts, const std::string& scope, bool to_source) const;
  Layer MakeLayer(const Parts& parts, const std::string& scope) const;

  const StackShape shape_;
  const RowKernel& row_kernel_;
  const Embeddings embeddings_;
  std::optional<PositionEncodings> positions_;  // none: attention has a bias instead
  std::vector<float> bias_;
  std::optional<Norm> embedding_norm_;
  std::optional<Norm> output_norm_;
  std::vector<Layer> layers_;
};

}  // namespace ct2triton
