// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "config/engine_options.h"
#include "engine/compute/cpu/products/kernel.h"
#include "engine/model/model_file.h"
#include "rows/alignment_heads.h"

namespace ct2triton {

// What kind of encoder or decoder a model has: a stack of layers, as its file describes it.
struct StackShape {
  std::string side;        // "encoder" or "decoder", which the names of its variables begin with
  std::string embeddings;  // their scope
  size_t layers = 0;
  size_t heads = 0;
  size_t width = 0;              // of the residual stream
  size_t heads_width = 0;        // of all heads together
  bool pre_norm = true;          // normalized before a sublayer, or after
  bool gated = false;            // the feed-forward network has a gate
  bool embedding_norm = false;   // there is a norm after the embeddings
  bool output_norm = false;      // and after the layers
  size_t bias_max_distance = 0;  // above 0: positions are in the attention, as T5 has them
  float embedding_scale = 1;
  products::Activation activation = products::Activation::kRelu;

  size_t head_dim() const { return heads_width / heads; }
  // "decoder/layer_3/"
  std::string LayerScope(size_t layer) const {
    return side + "/layer_" + std::to_string(layer) + '/';
  }
  // Of the layer that has the bias of all.
  std::string BiasName() const { return LayerScope(0) + "self_attention/relative_attention_bias"; }
};

struct DecoderShape : StackShape {
  bool start_from_zero_embedding = false;  // the first token counts as zeros (Marian)
  float output_scale = 1;                  // before the projection
  size_t vocabulary = 0;
  AlignmentHeads alignment;  // as the model names them, or CTranslate2 by default
};

// Throw Error(kUnsupported) that names the first variable which the loop does not know, or whose
// value or size it cannot follow: that would be another kind of encoder or decoder.
StackShape ReadEncoder(const ModelFile& file);
DecoderShape ReadDecoder(const ModelFile& file);

// The heads that the operator chooses for alignments; null where that is left to the model. Throws
// Error(kInvalidArgument) where the decoder has no such layer or head.
std::shared_ptr<const AlignmentHeads> ChooseAlignment(const EngineOptions& engine,
                                                      const DecoderShape& shape);

}  // namespace ct2triton
