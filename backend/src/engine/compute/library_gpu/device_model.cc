// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/library_gpu/device_model.h"

#include <cmath>

#include "engine/compute/library_gpu/device_compute.h"

namespace ct2triton {

DeviceModel::DeviceModel(std::shared_ptr<const Weights> weights, const LibraryLinearMaker& make)
    : DecoderModel(std::move(weights)),
      library_(std::static_pointer_cast<const Ct2Model>(this->weights().library())) {
  RequireLayers();
  RequireTensors();
  const auto& model = library_->model();
  const LibraryLinearMaker maker = make ? make : [this](const LibraryLinearSpec& spec) {
    return std::make_unique<LibraryLinear>(library_->model(), spec, device());
  };
  embeddings_ = std::make_unique<LibraryEmbeddings>(model, shape().embeddings);
  if (shape().embedding_norm) {
    embedding_norm_ = std::make_unique<LibraryNorm>(model, "decoder/layernorm_embedding");
  }
  if (shape().output_norm) {
    output_norm_ = std::make_unique<LibraryNorm>(model, "decoder/layer_norm");
  }
  for (size_t layer = 0; layer < shape().layers; ++layer) {
    layers_.push_back(MakeLayer(shape().LayerScope(layer), maker));
  }
  projection_ = maker({"decoder/projection", shape().width, std::nullopt, false});
  const ModelFile& file = this->weights().file();
  if (shape().bias_max_distance > 0) {
    bias_ = BiasByDistance(file.Floats(shape().BiasName()), shape().heads,
                           shape().bias_max_distance, /*encoder=*/false);
  } else {
    positions_.emplace(file.Floats("decoder/position_encodings/encodings"), shape().width);
  }
  for (const VocabularyMap* map : this->weights().AllMaps()) {
    if (map->fixed()) mapped_projections_[map] = projection_->Select(map->numbered());
  }
}

std::unique_ptr<LoopCompute> DeviceModel::NewCompute(LoopCaches* caches) const {
  return std::make_unique<DeviceCompute>(*this, caches);
}

ctranslate2::Device DeviceModel::device() const { return LibraryDevice(weights().device()); }

DeviceAttentionLayers DeviceModel::MakeAttention(const std::string& scope, bool to_source,
                                                 const LibraryLinearMaker& make) const {
  const ModelFile& file = weights().file();
  DeviceAttentionLayers attention;
  attention.norm = std::make_unique<LibraryNorm>(library_->model(), scope + "/layer_norm");
  attention.in = make({scope + "/linear_0", shape().width, std::nullopt, false});
  if (to_source) {
    const auto inputs = static_cast<size_t>(file.Get(scope + '/' + "linear_1/weight").columns());
    attention.keys = make({scope + "/linear_1", inputs, std::nullopt, false});
  }
  const std::string last = scope + (to_source ? "/linear_2" : "/linear_1");
  attention.out = make({last, shape().heads_width, std::nullopt, true});
  const auto head_share = static_cast<float>(shape().width / shape().heads);
  attention.scale =
      static_cast<float>(file.Attribute(scope + "/queries_scale", 1 / std::sqrt(head_share)));
  return attention;
}

DeviceLayer DeviceModel::MakeLayer(const std::string& scope, const LibraryLinearMaker& make) const {
  DeviceLayer layer;
  layer.self = MakeAttention(scope + "self_attention", /*to_source=*/false, make);
  layer.source = MakeAttention(scope + "attention", /*to_source=*/true, make);
  layer.feed_forward_norm =
      std::make_unique<LibraryNorm>(library_->model(), scope + "ffn/layer_norm");
  layer.inner = make({scope + "ffn/linear_0", shape().width, shape().activation, false});
  if (shape().gated) {
    layer.gate = make({scope + "ffn/linear_0_noact", shape().width, std::nullopt, false});
  }
  layer.outer = make({scope + "ffn/linear_1", layer.inner->outputs(), std::nullopt, true});
  return layer;
}

void DeviceModel::AddPosition(size_t position, float* embedding) const {
  if (positions_) positions_->Add(position, embedding);
}

size_t DeviceModel::packed_bytes() const {
  size_t bytes = 0;
  for (const auto& [map, projection] : mapped_projections_) bytes += projection->bytes();
  return bytes;
}

size_t DeviceModel::MapBytes(const VocabularyMap& map) const {
  const auto found = mapped_projections_.find(&map);
  return found == mapped_projections_.end() ? 0 : found->second->bytes();
}

}  // namespace ct2triton
