// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/calls/library/ct2_model.h"
#include "engine/compute/cpu/kernels.h"
#include "engine/compute/cpu/positions.h"
#include "engine/compute/decoder_model.h"
#include "engine/compute/library_gpu/library_layers.h"

namespace ct2triton {

// One attention of a layer. What is null is not there.
struct DeviceAttentionLayers {
  std::unique_ptr<LibraryNorm> norm;
  std::unique_ptr<LibraryLinear> in;    // to itself: queries, keys and values; else queries
  std::unique_ptr<LibraryLinear> keys;  // to the source: keys and values, of the encoder's output
  std::unique_ptr<LibraryLinear> out;
  float scale = 1;
};

struct DeviceLayer {
  DeviceAttentionLayers self;
  DeviceAttentionLayers source;
  std::unique_ptr<LibraryNorm> feed_forward_norm;
  std::unique_ptr<LibraryLinear> inner;  // activated
  std::unique_ptr<LibraryLinear> gate;
  std::unique_ptr<LibraryLinear> outer;
};

// The decoder of a model on a device of CTranslate2, put together from its layers.
class DeviceModel final : public DecoderModel {
 public:
  // `make`: the products; null: CTranslate2's own.
  explicit DeviceModel(std::shared_ptr<const Weights> weights,
                       const LibraryLinearMaker& make = nullptr);

  bool on_device() const override { return true; }
  std::unique_ptr<LoopCompute> NewCompute(LoopCaches* caches) const override;
  // The attention takes one token of each row.
  StepRoom step_room() const override { return {0, 0}; }
  size_t packed_bytes() const override;
  size_t MapBytes(const VocabularyMap& map) const override;
  // Each row has the keys and values of its source for itself, and rows share what the encoder
  // left.
  size_t CacheFloats(const CheckedRow& row) const override {
    return (CacheTokens(row) + EncodedTokens(row)) * TokenFloats();
  }
  size_t SourceCacheFloats(size_t tokens) const override { return tokens * memory_width(); }

  const Ct2Model& library() const { return *library_; }
  ctranslate2::Device device() const;
  ctranslate2::DataType type() const { return projection_->type(); }        // between the layers
  size_t memory_width() const { return layers_[0].source.keys->inputs(); }  // of encoded sources
  const LibraryEmbeddings& embeddings() const { return *embeddings_; }
  const LibraryNorm* embedding_norm() const { return embedding_norm_.get(); }
  const LibraryNorm* output_norm() const { return output_norm_.get(); }
  const std::vector<DeviceLayer>& layers() const { return layers_; }
  void AddPosition(size_t position, float* embedding) const;
  DistanceBias bias() const {
    return {bias_.empty() ? nullptr : bias_.data(), shape().bias_max_distance};
  }
  const LibraryLinear& ProjectionTo(const VocabularyMap* map) const {
    return map == nullptr ? *projection_ : *mapped_projections_.at(map);
  }

 private:
  DeviceAttentionLayers MakeAttention(const std::string& scope, bool to_source,
                                      const LibraryLinearMaker& make) const;
  DeviceLayer MakeLayer(const std::string& scope, const LibraryLinearMaker& make) const;

  const std::shared_ptr<const Ct2Model> library_;  // must outlive the layers
  std::unique_ptr<LibraryEmbeddings> embeddings_;
  std::unique_ptr<LibraryNorm> embedding_norm_;
  std::unique_ptr<LibraryNorm> output_norm_;
  std::vector<DeviceLayer> layers_;
  std::unique_ptr<LibraryLinear> projection_;
  std::map<const VocabularyMap*, std::unique_ptr<LibraryLinear>> mapped_projections_;
  std::optional<PositionEncodings> positions_;  // none where the attention tells them
  std::vector<float> bias_;
};

}  // namespace ct2triton
