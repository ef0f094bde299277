// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/encoder_model.h"

#include <cmath>
#include <regex>

#include "engine/compute/cpu/packed_embeddings.h"
#include "engine/compute/cpu/packed_layers.h"
#include "engine/model/decoder_shape.h"
#include "error.h"

namespace ct2triton {
namespace {

using ctranslate2::models::Model;

// The encoders that encoder_pass.cc computes have these variables and no others.
bool KnowsAll(const std::set<std::string>& names) {
  static const std::string product = "(weight|weight_scale|bias)";
  static const std::string norm = "(beta|gamma)";
  static const std::regex known(
      "encoder.(activation|embeddings_merge|multi_query_attention|num_heads|pre_norm|"
      "scale_embeddings|embeddings(_0)?.(weight|weight_scale|multiply_by_sqrt_depth)|"
      "position_encodings.encodings|(layer_norm|layernorm_embedding)." +
      norm + "|layer_[0-9]+.((self_attention|ffn).(layer_norm." + norm + "|linear_[01]." + product +
      ")|self_attention.queries_scale|ffn.linear_0_noact." + product + "))");
  const std::string encoder = "encoder/";
  for (auto name = names.lower_bound(encoder); name != names.end(); ++name) {
    if (name->compare(0, encoder.size(), encoder) != 0) break;
    if (!std::regex_match(*name, known)) return false;
  }
  return true;
}

// With the stroke that names of its parts follow.
std::string Scope(size_t layer) { return "encoder/layer_" + std::to_string(layer) + '/'; }

std::unique_ptr<Norm> OptionalNorm(const Model& model, const std::set<std::string>& names,
                                   const std::string& scope, size_t width) {
  if (names.count(scope + "/gamma") == 0) return nullptr;
  return std::make_unique<Norm>(model, scope, width);
}

bool Packed(const Linear& linear) {
  return dynamic_cast<const ChoosingLinear*>(&linear) != nullptr;
}

std::string EmbeddingsScope(const std::set<std::string>& names) {
  return names.count("encoder/embeddings_0/weight") != 0 ? "encoder/embeddings_0"
                                                         : "encoder/embeddings";
}

}  // namespace

std::unique_ptr<const EncoderModel> EncoderModel::Make(const Weights& weights,
                                                       const LinearMaker& make,
                                                       const Linear& projection) {
  const auto& names = weights.names();
  const auto& model = weights.model();
  const bool known = KnowsAll(names) &&
                     names.count("encoder/layer_0/self_attention/linear_0/weight") != 0 &&
                     names.count(EmbeddingsScope(names) + "/weight") != 0 &&
                     Attribute(model, "encoder/multi_query_attention", 0) == 0 &&
                     Attribute(model, "encoder/num_heads", 8) >= 1;
  if (!known) return nullptr;
  std::unique_ptr<const EncoderModel> encoder(new EncoderModel(model, names, make, projection));
  return encoder->Fits() ? std::move(encoder) : nullptr;
}

EncoderModel::EncoderModel(const Model& model, const std::set<std::string>& names,
                           const LinearMaker& make, const Linear& projection)
    : embeddings_scope_(EmbeddingsScope(names)),
      embeddings_(PackedIfTied(std::make_unique<LibraryEmbeddings>(model, embeddings_scope_), model,
                               embeddings_scope_, projection)),
      positions_(FloatsOf(model, "encoder/position_encodings/encodings"), embeddings_->size()),
      embedding_scale_(EmbeddingScale(model, "encoder")),
      heads_(static_cast<size_t>(Attribute(model, "encoder/num_heads", 8))),
      pre_norm_(Attribute(model, "encoder/pre_norm", 1) != 0),
      embedding_norm_(OptionalNorm(model, names, "encoder/layernorm_embedding", width())),
      output_norm_(OptionalNorm(model, names, "encoder/layer_norm", width())) {
  if (embedding_scale_ == 0) embedding_scale_ = std::sqrt(static_cast<float>(width()));
  for (size_t layer = 0;; ++layer) {
    const std::string scope = Scope(layer);
    if (names.count(scope + "self_attention/linear_0/weight") == 0) break;
    const bool gated = names.count(scope + "ffn/linear_0_noact/weight") != 0;
    layers_.push_back(MakeLayer(model, scope, make, gated));
    if (!Packed(*layers_.back().self.in)) break;
  }
}

EncoderLayer EncoderModel::MakeLayer(const Model& model, const std::string& scope,
                                     const LinearMaker& make, bool gated) const {
  const std::string attention = scope + "self_attention";
  const std::string feed_forward = scope + "ffn";
  EncoderLayer layer;
  layer.self.norm = std::make_unique<Norm>(model, attention + "/layer_norm", width());
  layer.self.in = make(model, {attention + "/linear_0", width(), std::nullopt, false});
  const size_t inner = layer.self.in->outputs() / 3;
  layer.self.out = make(model, {attention + "/linear_1", inner, std::nullopt, true});
  // As in the decoder, see DecoderModel::MakeAttention.
  const auto head_share = static_cast<float>(layer.self.out->outputs() / heads_);
  layer.self.scale =
      static_cast<float>(Attribute(model, attention + "/queries_scale", 1 / std::sqrt(head_share)));
  layer.feed_forward_norm = std::make_unique<Norm>(model, feed_forward + "/layer_norm", width());
  const auto activation = static_cast<ctranslate2::ops::ActivationType>(
      static_cast<int>(Attribute(model, "encoder/activation", 0)));
  layer.inner = make(model, {feed_forward + "/linear_0", width(), activation, false});
  if (gated) {
    layer.gate = make(model, {feed_forward + "/linear_0_noact", width(), std::nullopt, false});
  }
  layer.outer =
      make(model, {feed_forward + "/linear_1", layer.inner->outputs(), std::nullopt, true});
  return layer;
}

// Whether all products are packed and all sizes are one another's.
bool EncoderModel::Fits() const {
  for (const auto& layer : layers_) {
    if (!Packed(*layer.self.in) || !Packed(*layer.self.out)) return false;
    const bool fits = layer.self.in->outputs() == 3 * inner_width() &&
                      layer.self.out->inputs() == inner_width() && inner_width() % heads_ == 0 &&
                      layer.self.out->outputs() == width() && layer.outer->outputs() == width() &&
                      (!layer.gate || layer.gate->outputs() == layer.inner->outputs());
    if (!fits) return false;
  }
  return !layers_.empty();
}

}  // namespace ct2triton
