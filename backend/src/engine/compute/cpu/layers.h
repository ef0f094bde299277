// SPDX-License-Identifier: Apache-2.0
//
// The layers that a decoder is put together from. Those here are CTranslate2's own, held in buffers
// of ours; `Linear` is where products of another make can take their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctranslate2_layers.h"
#include "engine/compute/cpu/guarded.h"

namespace ct2triton {

namespace products {
class PackedLinear;
}

// Throws Error(kUnsupported), with the symbol, if the loaded CTranslate2 library lacks something
// that the layers below call. The mangled names: see kLayerSymbols.
void RequireLayers();
extern const std::vector<const char*> kLayerSymbols;

// A product with fixed weights, shared by threads: y = activation(x * weights + bias) + residual.
class Linear {
 public:
  virtual ~Linear() = default;
  virtual size_t inputs() const = 0;
  virtual size_t outputs() const = 0;
  // in: [rows, inputs]; out: [rows, outputs], another place than `in` and `residual`.
  // residual: [rows, outputs]; null: none.
  virtual void Apply(const float* in, size_t rows, float* out, const float* residual) const = 0;
  // Of memory beside the model's variables.
  virtual size_t bytes() const = 0;
  // The same product with only these outputs, in this order.
  virtual std::unique_ptr<Linear> Select(const std::vector<int64_t>& outputs) const = 0;
};

// Which product of a model.
struct LinearSpec {
  std::string scope;  // of its variables: "decoder/layer_0/ffn/linear_1"
  size_t inputs = 0;
  std::optional<ctranslate2::ops::ActivationType> activation;
  bool layer_out = false;  // it is the last of its sublayer
};
using LinearMaker = std::function<std::unique_ptr<Linear>(const ctranslate2::models::Model& model,
                                                          const LinearSpec& spec)>;

// CTranslate2's Dense.
class LibraryLinear : public Linear {
 public:
  // `device`: of the model. On a CPU, throws Error(kUnsupported) where its results are not float32.
  LibraryLinear(const ctranslate2::models::Model& model, const LinearSpec& spec,
                ctranslate2::Device device = ctranslate2::Device::CPU);
  // The product as one of the library's. Throws Error(kInternal) if it is none.
  static const LibraryLinear& Of(const Linear& linear);
  size_t inputs() const override { return spec_.inputs; }
  size_t outputs() const override { return static_cast<size_t>(dense_->output_size()); }
  size_t bytes() const override;
  void Apply(const float* in, size_t rows, float* out, const float* residual) const override;
  // Of tensors on the device of the model.
  virtual void ApplyTo(const ctranslate2::StorageView& in, const ctranslate2::StorageView* residual,
                       ctranslate2::StorageView* out) const;
  ctranslate2::DataType type() const { return dense_->output_type(); }
  std::unique_ptr<Linear> Select(const std::vector<int64_t>& outputs) const override;

 private:
  bool selected_ = false;  // it has a copy of some of the weights
  const ctranslate2::models::Model& model_;
  const ctranslate2::Device device_;
  const LinearSpec spec_;  // dense_ points to its activation
  Guarded<ctranslate2::layers::Dense> dense_;
};

// CTranslate2's LayerNorm, or its RMS norm where the model has no shift.
class Norm {
 public:
  Norm(const ctranslate2::models::Model& model, const std::string& scope, size_t size);
  // Both [rows, size]; they may be one.
  void Apply(const float* in, size_t rows, float* out) const;
  void ApplyTo(const ctranslate2::StorageView& in, ctranslate2::StorageView* out) const;

 private:
  const size_t size_;
  Guarded<ctranslate2::layers::LayerNorm> norm_;
};

// One attention of a layer of a decoder or an encoder. What is null is not there.
struct AttentionLayers {
  std::unique_ptr<Norm> norm;
  std::unique_ptr<Linear> in;    // to itself: queries, keys and values; to the source: queries
  std::unique_ptr<Linear> keys;  // to the source: keys and values, of the encoder's output
  std::unique_ptr<Linear> out;
  float scale = 1;
};

// A table of tokens, shared by threads.
class TokenEmbeddings {
 public:
  virtual ~TokenEmbeddings() = default;
  virtual size_t size() const = 0;
  // out: [ids, size].
  virtual void Apply(const std::vector<int32_t>& ids, float* out) const = 0;
  // Where it is looked up instead of in the model's variable; null: there.
  virtual std::shared_ptr<const products::PackedLinear> packed() const = 0;
};

// CTranslate2's Embeddings.
class LibraryEmbeddings : public TokenEmbeddings {
 public:
  LibraryEmbeddings(const ctranslate2::models::Model& model, const std::string& scope);
  // The embeddings as the library's. Throws Error(kInternal) if they are not.
  static const LibraryEmbeddings& Of(const TokenEmbeddings& embeddings);
  size_t size() const override { return static_cast<size_t>(embeddings_->output_size()); }
  void Apply(const std::vector<int32_t>& ids, float* out) const override;
  // Of tensors on the device of the model.
  void ApplyTo(const ctranslate2::StorageView& ids, ctranslate2::StorageView* out) const;
  std::shared_ptr<const products::PackedLinear> packed() const override { return nullptr; }

 private:
  Guarded<ctranslate2::layers::Embeddings> embeddings_;
};

}  // namespace ct2triton
