// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/decoder_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/compute/cpu/packed_embeddings.h"
#include "engine/compute/cpu/packed_layers.h"
#include "engine/compute/cpu/positions.h"
#include "engine/compute/library_gpu/tensors.h"
#include "engine/loop/cache_pool.h"
#include "engine/search/wide_search.h"
#include "error.h"

namespace ct2triton {
namespace {

constexpr const char* kEmbeddings = "decoder/embeddings";  // their scope

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kUnsupported, "the decode loop cannot run this model: " + what);
}

LinearMaker LibraryMaker(ctranslate2::Device device) {
  return [device](const ctranslate2::models::Model& model, const LinearSpec& spec) {
    return std::make_unique<LibraryLinear>(model, spec, device);
  };
}

}  // namespace

DecoderShape DecoderModel::ReadShape(const Weights& weights) {
  RequireLayers();
  if (OnDevice(weights)) RequireTensors();
  return DecoderShape(weights.model(), weights.names());
}

bool DecoderModel::OnDevice(const Weights& weights) {
  if (weights.device().kind == Device::Kind::kGpu) return true;
  const char* chosen = std::getenv("CT2_TRITON_LOOP");
  return chosen != nullptr && std::string(chosen) == "device";
}

ctranslate2::Device DecoderModel::device() const { return LibraryDevice(weights_->device()); }

ctranslate2::DataType DecoderModel::type() const {
  return on_device_ ? LibraryLinear::Of(*projection_).type() : ctranslate2::DataType::FLOAT32;
}

DecoderModel::DecoderModel(std::shared_ptr<const Weights> weights, const LinearMaker& make,
                           bool own_encoder, Plain plain)
    : weights_(std::move(weights)),
      plain_(std::make_unique<const PlainWeights::Use>(&weights_->plain())),
      on_device_(OnDevice(*weights_)),
      kernels_(ChooseKernels()),
      shape_(ReadShape(*weights_)),
      embeddings_(std::make_unique<LibraryEmbeddings>(weights_->model(), kEmbeddings)),
      embedding_scale_(shape_.embedding_scale != 0
                           ? shape_.embedding_scale
                           : std::sqrt(static_cast<float>(embeddings_->size()))) {
  LinearMaker maker = make ? make : LibraryMaker(device());
  if (plain == Plain::kGoAtOnce) maker = GivingBack(std::move(maker));
  const auto& model = weights_->model();
  if (shape_.embedding_norm) {
    embedding_norm_ = std::make_unique<Norm>(model, "decoder/layernorm_embedding", width());
  }
  if (shape_.output_norm)
    output_norm_ = std::make_unique<Norm>(model, "decoder/layer_norm", width());
  for (size_t layer = 0; layer < shape_.layers; ++layer) AddLayer(layer, maker);
  projection_ = maker(model, {"decoder/projection", width(), std::nullopt, false});
  if (vocabulary() != weights_->target().size()) {
    Refuse("its projection has " + std::to_string(vocabulary()) + " outputs for " +
           std::to_string(weights_->target().size()) + " tokens");
  }
  embeddings_ = PackedIfTied(std::move(embeddings_), model, kEmbeddings, *projection_);
  ReadPositions();
  MakeMappedProjections();
  if (make && own_encoder && !on_device_) {
    encoder_ = EncoderModel::Make(*weights_, maker, *projection_);
  }
  if (make && !encoder_) plain_->Keep("encoder/");  // which CTranslate2's reads, without a use
}

// So a model that loads never holds all weights twice.
LinearMaker DecoderModel::GivingBack(LinearMaker make) const {
  return [this, make = std::move(make)](const ctranslate2::models::Model& model,
                                        const LinearSpec& spec) {
    auto linear = make(model, spec);
    if (const auto* packed = dynamic_cast<const PackedLayer*>(linear.get())) {
      plain_->GiveBack({{spec.scope + "/weight", packed->layer()}}, weights_->names());
    }
    return linear;
  };
}

void DecoderModel::GiveBackPlain(std::vector<WeightCopy> copies) {
  const auto add = [&copies](const std::string& scope, const TokenEmbeddings& embeddings) {
    if (auto packed = embeddings.packed()) copies.push_back({scope + "/weight", std::move(packed)});
  };
  add(kEmbeddings, *embeddings_);
  if (encoder_) add(encoder_->embeddings_scope(), encoder_->embeddings());
  plain_.reset();
  weights_->plain().GiveBack(copies, weights_->names());
}

AttentionLayers DecoderModel::MakeAttention(const std::string& scope, bool to_source,
                                            const LinearMaker& make) const {
  const auto& model = weights_->model();
  AttentionLayers attention;
  attention.norm = std::make_unique<Norm>(model, scope + "/layer_norm", width());
  attention.in = make(model, {scope + "/linear_0", width(), std::nullopt, false});
  if (to_source) attention.keys = make(model, {scope + "/linear_1", width(), std::nullopt, false});
  const size_t inner = attention.in->outputs() / (to_source ? 1 : 3);
  const std::string last = scope + (to_source ? "/linear_2" : "/linear_1");
  attention.out = make(model, {last, inner, std::nullopt, true});
  // CTranslate2's default does not come from the width of a head, but from that of the output.
  const auto head_share = static_cast<float>(attention.out->outputs() / shape_.heads);
  attention.scale =
      static_cast<float>(Attribute(model, scope + "/queries_scale", 1 / std::sqrt(head_share)));
  const bool whole = inner > 0 && inner % shape_.heads == 0 &&
                     attention.in->outputs() == inner * (to_source ? 1 : 3) &&
                     (!to_source || attention.keys->outputs() == 2 * inner) &&
                     attention.out->outputs() == width();
  if (!whole)
    Refuse("the sizes of " + scope + " do not fit " + std::to_string(shape_.heads) + " heads");
  return attention;
}

void DecoderModel::AddLayer(size_t layer, const LinearMaker& make) {
  const auto& model = weights_->model();
  const std::string scope = LayerScope(layer);
  const std::string feed_forward = scope + "/ffn";
  DecoderLayer added;
  added.self = MakeAttention(scope + "/self_attention", /*to_source=*/false, make);
  added.source = MakeAttention(scope + "/attention", /*to_source=*/true, make);
  if (layer == 0) heads_width_ = added.source.in->outputs();
  if (added.self.in->outputs() != 3 * heads_width_ || added.source.in->outputs() != heads_width_) {
    Refuse("the sizes of " + scope + " are not those of the layers before");
  }
  added.feed_forward_norm = std::make_unique<Norm>(model, feed_forward + "/layer_norm", width());
  added.inner = make(model, {feed_forward + "/linear_0", width(), shape_.activation, false});
  if (shape_.gated) {
    added.gate = make(model, {feed_forward + "/linear_0_noact", width(), std::nullopt, false});
  }
  added.outer =
      make(model, {feed_forward + "/linear_1", added.inner->outputs(), std::nullopt, true});
  layers_.push_back(std::move(added));
}

void DecoderModel::ReadPositions() {
  const auto& model = weights_->model();
  if (shape_.relative_bias) {
    const std::string name = "decoder/layer_0/self_attention/relative_attention_bias";
    const float* table = FloatsHere(name);
    const auto* variable = model.get_variable_if_exists(name);
    const auto buckets = static_cast<size_t>(variable->dim(0));
    const bool fits = buckets >= 2 && shape_.bias_max_distance > buckets / 2 &&
                      static_cast<size_t>(variable->dim(1)) == shape_.heads;
    if (!fits) Refuse("the size of " + name + " is not known");
    bias_ = BiasByDistance(table, buckets, shape_.heads, shape_.bias_max_distance,
                           /*encoder=*/false);
    return;
  }
  positions_.emplace(FloatsHere("decoder/position_encodings/encodings"), width());
}

// As FloatsOf, of a variable that may lie on a device.
const float* DecoderModel::FloatsHere(const std::string& name) {
  if (!on_device_) return FloatsOf(weights_->model(), name);
  const auto* variable = weights_->model().get_variable_if_exists(name);
  if (variable == nullptr) return nullptr;
  copied_ = Tensors::Floats(*variable, static_cast<size_t>(variable->dim(0) * variable->dim(1)));
  return copied_.data();
}

void DecoderModel::AddPosition(size_t position, float* embedding) const {
  if (positions_) positions_->Add(position, embedding);
}

void DecoderModel::MakeMappedProjections() {
  for (const VocabularyMap* map : weights_->AllMaps()) {
    if (map->fixed()) mapped_projections_[map] = projection_->Select(map->numbered());
  }
}

size_t DecoderModel::MappedBytes() const {
  size_t bytes = 0;
  for (const auto& [map, projection] : mapped_projections_) bytes += projection->bytes();
  return bytes;
}

size_t DecoderModel::EncodedTokens(const CheckedRow& row) const {
  return row.source.size() + static_cast<size_t>(weights_->added_source_tokens());
}

size_t DecoderModel::CacheTokens(const CheckedRow& row) const {
  size_t forced = row.prefix.size() - (weights_->NeedsPrefix() ? 1 : 0);
  if (row.search->Biased()) forced = 0;
  return SlotsFor(static_cast<size_t>(row.search->Copies()), forced,
                  static_cast<size_t>(row.limit_tokens));
}

size_t DecoderModel::CacheFloats(const CheckedRow& row) const {
  return (CacheTokens(row) + (on_device_ ? EncodedTokens(row) : 0)) * TokenFloats();
}

size_t DecoderModel::SourceCacheFloats(size_t tokens) const {
  return tokens * (on_device_ ? layers_[0].source.keys->inputs() : TokenFloats());
}

size_t DecoderModel::CacheBytes(const CheckedRow& row) const {
  return CachePool::BlockBytes(CacheFloats(row));
}

size_t DecoderModel::SourceCacheBytes(const CheckedRow& row) const {
  return CachePool::BlockBytes(SourceCacheFloats(EncodedTokens(row)));
}

}  // namespace ct2triton
