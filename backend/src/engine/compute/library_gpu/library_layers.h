// SPDX-License-Identifier: Apache-2.0
//
// CTranslate2's own layers, held in buffers of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctranslate2_layers.h"
#include "engine/compute/cpu/products/kernel.h"
#include "engine/compute/library_gpu/guarded.h"

namespace ct2triton {

// Throws Error(kUnsupported), with the symbol, if the loaded CTranslate2 library lacks something
// that the layers below call. The mangled names: see kLayerSymbols.
void RequireLayers();
extern const std::vector<const char*> kLayerSymbols;

// Which product of a model.
struct LibraryLinearSpec {
  std::string scope;  // of its variables: "decoder/layer_0/ffn/linear_1"
  size_t inputs = 0;
  std::optional<products::Activation> activation;
  bool layer_out = false;  // it is the last of its sublayer
};

// CTranslate2's Dense.
class LibraryLinear {
 public:
  // `device`: of the model, which must be there as long.
  LibraryLinear(const ctranslate2::models::Model& model, const LibraryLinearSpec& spec,
                ctranslate2::Device device);
  virtual ~LibraryLinear() = default;
  size_t inputs() const { return spec_.inputs; }
  size_t outputs() const { return static_cast<size_t>(dense_->output_size()); }
  size_t bytes() const;  // of memory beside the model's variables
  // Of tensors on the device of the model. residual: null: none.
  virtual void ApplyTo(const ctranslate2::StorageView& in, const ctranslate2::StorageView* residual,
                       ctranslate2::StorageView* out) const;
  ctranslate2::DataType type() const { return dense_->output_type(); }
  // The same product with only these outputs, in this order.
  std::unique_ptr<LibraryLinear> Select(const std::vector<int64_t>& outputs) const;

 private:
  bool selected_ = false;  // it has a copy of some of the weights
  const ctranslate2::models::Model& model_;
  const ctranslate2::Device device_;
  const LibraryLinearSpec spec_;
  const std::optional<ctranslate2::ops::ActivationType> activation_;  // dense_ points to it
  Guarded<ctranslate2::layers::Dense> dense_;
};
using LibraryLinearMaker =
    std::function<std::unique_ptr<LibraryLinear>(const LibraryLinearSpec& spec)>;

// CTranslate2's LayerNorm, or its RMS norm where the model has no shift.
class LibraryNorm {
 public:
  LibraryNorm(const ctranslate2::models::Model& model, const std::string& scope)
      : norm_(model, scope) {}
  void ApplyTo(const ctranslate2::StorageView& in, ctranslate2::StorageView* out) const {
    (*norm_)(in, *out);
  }

 private:
  Guarded<ctranslate2::layers::LayerNorm> norm_;
};

// CTranslate2's Embeddings.
class LibraryEmbeddings {
 public:
  LibraryEmbeddings(const ctranslate2::models::Model& model, const std::string& scope)
      : embeddings_(model, scope) {}
  void ApplyTo(const ctranslate2::StorageView& ids, ctranslate2::StorageView* out) const {
    (*embeddings_)(ids, *out);
  }

 private:
  Guarded<ctranslate2::layers::Embeddings> embeddings_;
};

}  // namespace ct2triton
