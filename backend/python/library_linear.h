// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctranslate2_layers.h"
#include "engine/compute/cpu/products/kernel.h"
#include "guarded.h"

namespace ct2triton {

// The symbols of CTranslate2 that LibraryLinear calls, mangled.
extern const std::vector<const char*> kLayerSymbols;

// CTranslate2's Dense on a CPU, which ours is compared with.
class LibraryLinear {
 public:
  // scope: of the layer's variables, "decoder/layer_0/ffn/linear_1"; the model must be there as
  // long. Throws Error(kUnsupported), with the symbol, if the library lacks something.
  LibraryLinear(const ctranslate2::models::Model& model, const std::string& scope,
                std::optional<products::Activation> activation);
  size_t outputs() const { return static_cast<size_t>(dense_->output_size()); }
  // residual: null: none.
  void Apply(const ctranslate2::StorageView& in, const ctranslate2::StorageView* residual,
             ctranslate2::StorageView* out) const;
  // Keeps these outputs, in this order.
  void Select(const std::vector<int64_t>& outputs);

 private:
  const std::optional<ctranslate2::ops::ActivationType> activation_;  // dense_ points to it
  Guarded<ctranslate2::layers::Dense> dense_;
};

}  // namespace ct2triton
