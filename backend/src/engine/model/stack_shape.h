// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "config/engine_options.h"
#include "engine/model/activation.h"
#include "engine/model/model_file.h"
#include "rows/alignment_heads.h"

namespace ct2triton {

// Shape of an encoder or decoder, a stack of layers, as described in the model's file.
struct StackShape {
  std::string side;        // "encoder" or "decoder": first part of its variables' names
  std::string embeddings;  // their scope
  size_t layers = 0;
  size_t heads = 0;
  size_t width = 0;              // of the residual stream
  size_t heads_width = 0;        // of all heads together
  bool pre_norm = true;          // normalized before a sublayer, or after
  bool gated = false;            // the feed-forward network has a gate
  bool embedding_norm = false;   // there is a norm after the embeddings
  bool output_norm = false;      // and after the layers
  size_t bias_max_distance = 0;  // above 0: attention has a bias by distance, as in T5
  float embedding_scale = 1;
  Activation activation = Activation::kRelu;

  size_t head_dim() const { return heads_width / heads; }
  // "decoder/layer_3/"
  std::string LayerScope(size_t layer) const {
    return side + "/layer_" + std::to_string(layer) + '/';
  }
  // In the first layer, which stores the bias of all layers.
  std::string BiasName() const { return LayerScope(0) + "self_attention/relative_attention_bias"; }
};

struct DecoderShape : StackShape {
  bool start_from_zero_embedding = false;  // the first token's embedding is zero (Marian)
  float output_scale = 1;                  // factor before the projection
  size_t vocabulary = 0;
  AlignmentHeads alignment;  // of the model, or CTranslate2's default
};

// Throw Error(kUnsupported), with the name of the first variable that the loop does not know, or
// whose value or size it does not support.
StackShape ReadEncoder(const ModelFile& file);
DecoderShape ReadDecoder(const ModelFile& file);

// The heads that the operator chooses for alignments; null: the model's. Throws
// Error(kInvalidArgument) if the decoder has no such layer or head.
std::shared_ptr<const AlignmentHeads> ChooseAlignment(const EngineOptions& engine,
                                                      const DecoderShape& shape);

}  // namespace ct2triton
