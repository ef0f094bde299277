// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/compute/cpu/layers.h"
#include "engine/compute/cpu/positions.h"
#include "engine/model/weights.h"

namespace ct2triton {

struct EncoderLayer {
  AttentionLayers self;
  std::unique_ptr<Norm> feed_forward_norm;
  std::unique_ptr<Linear> inner;  // activated
  std::unique_ptr<Linear> gate;   // null: none
  std::unique_ptr<Linear> outer;
};

// The encoder of a model, put together from layers as DecoderModel is. It serves where the products
// are packed: with those of CTranslate2, its own encoder is as good.
class EncoderModel {
 public:
  // `projection`: of the decoder, which may have the same table of tokens.
  // Null where the products are not packed, or where the encoder is of a kind that encoder_pass.cc
  // does not compute (T5's positions are in its attention): then CTranslate2's serves.
  static std::unique_ptr<const EncoderModel> Make(const Weights& weights, const LinearMaker& make,
                                                  const Linear& projection);

  bool pre_norm() const { return pre_norm_; }
  size_t heads() const { return heads_; }
  size_t width() const { return embeddings_->size(); }                  // of the residual stream
  size_t inner_width() const { return layers_[0].self.out->inputs(); }  // of all heads together
  const TokenEmbeddings& embeddings() const { return *embeddings_; }
  const std::string& embeddings_scope() const { return embeddings_scope_; }
  float embedding_scale() const { return embedding_scale_; }
  const PositionEncodings& positions() const { return positions_; }
  const Norm* embedding_norm() const { return embedding_norm_.get(); }
  const Norm* output_norm() const { return output_norm_.get(); }
  const std::vector<EncoderLayer>& layers() const { return layers_; }

 private:
  EncoderModel(const ctranslate2::models::Model& model, const std::set<std::string>& names,
               const LinearMaker& make, const Linear& projection);
  EncoderLayer MakeLayer(const ctranslate2::models::Model& model, const std::string& scope,
                         const LinearMaker& make, bool gated) const;
  bool Fits() const;

  const std::string embeddings_scope_;
  const std::unique_ptr<const TokenEmbeddings> embeddings_;
  const PositionEncodings positions_;
  float embedding_scale_;
  size_t heads_;
  bool pre_norm_;
  std::unique_ptr<Norm> embedding_norm_;
  std::unique_ptr<Norm> output_norm_;
  std::vector<EncoderLayer> layers_;
};

}  // namespace ct2triton
