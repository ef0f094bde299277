// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "config/engine_options.h"
#include "ctranslate2_layers.h"
#include "engine/compute/row_alignment.h"

namespace ct2triton {

// What kind of decoder a model has, as far as its attributes tell; sizes come with its layers.
struct DecoderShape {
  size_t layers = 0;
  size_t heads = 0;
  bool pre_norm = true;                    // normalized before a sublayer, or after
  bool gated = false;                      // the feed-forward network has a gate
  bool relative_bias = false;              // positions are in the attention, as T5 has them
  size_t bias_max_distance = 0;            // of relative_bias
  bool start_from_zero_embedding = false;  // the first token counts as zeros (Marian)
  bool embedding_norm = false;
  bool output_norm = false;
  float embedding_scale = 0;  // 0: the square root of the model's width
  float output_scale = 1;     // before the projection
  AlignmentHeads alignment;   // as the model names them, or CTranslate2 by default
  ctranslate2::ops::ActivationType activation = ctranslate2::ops::ActivationType::ReLU;

  // `names`: all variables of the model, see Weights::names. Throws Error(kUnsupported) that
  // names the first variable of the decoder which the loop does not know, or whose value it cannot
  // follow: that would be another kind of decoder.
  DecoderShape(const ctranslate2::models::Model& model, const std::set<std::string>& names);
};

// The heads that the operator chooses for alignments; null where that is left to the model. Throws
// Error(kInvalidArgument) where the decoder has no such layer or head.
std::shared_ptr<const AlignmentHeads> ChooseAlignment(const EngineOptions& engine,
                                                      const DecoderShape& shape);

// "decoder/layer_3"
std::string LayerScope(size_t layer);

// What embeddings of a side ("decoder" or "encoder") are multiplied by; 0: the square root of the
// model's width.
float EmbeddingScale(const ctranslate2::models::Model& model, const std::string& side);

// The floats of a variable; null where the model has none. Throws Error(kUnsupported) where it is
// of another type.
const float* FloatsOf(const ctranslate2::models::Model& model, const std::string& name);

// A number that a model holds as an attribute, of whatever type; `otherwise` where it has none.
double Attribute(const ctranslate2::models::Model& model, const std::string& name,
                 double otherwise);

}  // namespace ct2triton
