// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/compute/cpu/encoder_model.h"
#include "engine/compute/cpu/kernels.h"
#include "engine/compute/cpu/layers.h"
#include "engine/compute/cpu/positions.h"
#include "engine/loop/step_budget.h"
#include "engine/model/decoder_shape.h"
#include "engine/model/weights.h"
#include "rows/checked_row.h"

namespace ct2triton {

struct DecoderLayer {
  AttentionLayers self;
  AttentionLayers source;
  std::unique_ptr<Norm> feed_forward_norm;
  std::unique_ptr<Linear> inner;  // activated
  std::unique_ptr<Linear> gate;
  std::unique_ptr<Linear> outer;
};

// The decoder of a model, put together from layers: all that loops share, and never changed once it
// is made. The layers end before the weights that they refer to.
class DecoderModel {
 public:
  // Throws Error(kUnsupported), with the reason, where the loop cannot run the model with this
  // library; calls of CTranslate2 then can. `make`: the products, CTranslate2's own by default, and
  // always so on a device. `own_encoder`: encode with the same products, see encoder().
  // `plain`: what becomes of the weights of a product that `make` has packed.
  enum class Plain { kStay, kGoAtOnce };
  explicit DecoderModel(std::shared_ptr<const Weights> weights, const LinearMaker& make = nullptr,
                        bool own_encoder = true, Plain plain = Plain::kStay);
  DecoderModel(const DecoderModel&) = delete;
  DecoderModel& operator=(const DecoderModel&) = delete;

  // Throws as the constructor does where the model is of a kind that the loop does not know.
  static DecoderShape ReadShape(const Weights& weights);

  // The packed layers are all that loops compute with: CTranslate2's weights are not needed any
  // more, nor those of tables that several layers have. `copies`: of those layers.
  void GiveBackPlain(std::vector<WeightCopy> copies);

  const Weights& weights() const { return *weights_; }
  // Loops compute on the device of the weights, by operations of CTranslate2 (DeviceCompute), and
  // not by our own code for CPUs. So it is on a GPU, and where the environment variable
  // CT2_TRITON_LOOP is "device": that is how it is tested on a CPU.
  static bool OnDevice(const Weights& weights);
  bool on_device() const { return on_device_; }
  ctranslate2::Device device() const;
  ctranslate2::DataType type() const;  // of what is between the layers
  // The attention of a device takes one token of each row.
  StepRoom step_room() const { return on_device_ ? StepRoom{0, 0} : StepRoom{127, 64}; }
  const DecoderShape& shape() const { return shape_; }
  const Kernels& kernels() const { return kernels_; }
  size_t width() const { return embeddings_->size(); }  // of the residual stream
  size_t inner_width() const { return heads_width_; }   // of all heads together
  size_t head_dim() const { return heads_width_ / shape_.heads; }
  size_t vocabulary() const { return projection_->outputs(); }

  const TokenEmbeddings& embeddings() const { return *embeddings_; }
  float embedding_scale() const { return embedding_scale_; }
  const Norm* embedding_norm() const { return embedding_norm_.get(); }
  const Norm* output_norm() const { return output_norm_.get(); }
  const std::vector<DecoderLayer>& layers() const { return layers_; }
  // Adds what tells a token's position to its embedding; nothing where the attention tells it. The
  // positions of a row are within the limit that CheckRow gave it.
  void AddPosition(size_t position, float* embedding) const;
  // Of a DistanceBias with bias_max_distance; null: the attention has none.
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }
  // To the whole vocabulary.
  const Linear& projection() const { return *projection_; }
  // To the candidates of each vocabulary map of the weights that has fixed ones, in their order.
  using MappedProjections = std::map<const VocabularyMap*, std::unique_ptr<Linear>>;
  const MappedProjections& mapped_projections() const { return mapped_projections_; }
  // To the candidates of one of them; null: to the whole vocabulary.
  const Linear& ProjectionTo(const VocabularyMap* map) const {
    return map == nullptr ? *projection_ : *mapped_projections_.at(map);
  }
  size_t MappedBytes() const;  // of the memory that those take
  // The model's encoder, put together from the same products; null: CTranslate2's own serves.
  const EncoderModel* encoder() const { return encoder_.get(); }

  // Floats of the keys and values of one token, in all layers.
  size_t TokenFloats() const { return layers_.size() * 2 * heads_width_; }
  // Tokens that the cache of a row holds: up to its limit, of each of its beams.
  size_t CacheTokens(const CheckedRow& row) const;
  // What a row takes from the pool of a loop, and its source. On a device each row has the keys and
  // values of its source for itself, and rows share what the encoder left.
  size_t CacheFloats(const CheckedRow& row) const;
  size_t SourceCacheFloats(size_t tokens) const;
  // What DecodeLoop::Admit takes from its pool for a row: for its own tokens up to its limit, and
  // for its source where no other row has it.
  size_t CacheBytes(const CheckedRow& row) const;
  size_t SourceCacheBytes(const CheckedRow& row) const;
  // Tokens of a source row as the encoder sees it.
  size_t EncodedTokens(const CheckedRow& row) const;

 private:
  LinearMaker GivingBack(LinearMaker make) const;
  void AddLayer(size_t layer, const LinearMaker& make);
  AttentionLayers MakeAttention(const std::string& scope, bool to_source,
                                const LinearMaker& make) const;
  void ReadPositions();
  const float* FloatsHere(const std::string& name);
  void MakeMappedProjections();

  const std::shared_ptr<const Weights> weights_;  // first: it must outlive the layers
  std::unique_ptr<const PlainWeights::Use> plain_;
  const bool on_device_;
  const Kernels& kernels_;
  const DecoderShape shape_;
  std::unique_ptr<TokenEmbeddings> embeddings_;
  const float embedding_scale_;
  size_t heads_width_ = 0;
  std::unique_ptr<Norm> embedding_norm_;
  std::unique_ptr<Norm> output_norm_;
  std::vector<DecoderLayer> layers_;
  std::unique_ptr<Linear> projection_;
  MappedProjections mapped_projections_;
  std::optional<PositionEncodings> positions_;  // none where the attention tells them
  std::vector<float> copied_;                   // of them, or of a bias, from a device
  std::unique_ptr<const EncoderModel> encoder_;
  std::vector<float> bias_;
};

}  // namespace ct2triton
