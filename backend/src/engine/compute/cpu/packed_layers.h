// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/compute/cpu/layers.h"
#include "engine/compute/cpu/products/packed_linear.h"
#include "engine/model/plain_weights.h"

namespace ct2triton {

// A product that can choose among its outputs without writing them.
class ChoosingLinear : public Linear {
 public:
  // Each row's greedy choice. rules, choices: one per row.
  virtual void Choose(const float* in, const std::vector<products::ChoiceRules>& rules,
                      products::Choice* choices) const = 0;
};

// An int8 or float32 layer of a model with its weights packed once, see engine/products. Its
// outputs are those of CTranslate2's layer, with int8 weights bit by bit: a trial at load has shown
// it.
class PackedLayer : public ChoosingLinear {
 public:
  PackedLayer(std::shared_ptr<const products::PackedLinear> layer, products::Rounding rounding,
              products::Activation activation);
  size_t inputs() const override { return static_cast<size_t>(layer_->inputs()); }
  size_t outputs() const override { return static_cast<size_t>(layer_->outputs()); }
  size_t bytes() const override { return layer_->bytes(); }
  const std::shared_ptr<const products::PackedLinear>& layer() const { return layer_; }
  void Apply(const float* in, size_t rows, float* out, const float* residual) const override;
  std::unique_ptr<Linear> Select(const std::vector<int64_t>& outputs) const override;
  void Choose(const float* in, const std::vector<products::ChoiceRules>& rules,
              products::Choice* choices) const override;

 private:
  std::shared_ptr<const products::PackedLinear> layer_;
  products::Rounding rounding_;
  products::Activation activation_;
};

// Makes the layers of a model: packed where that gives what the library's layer does, and the
// library's own elsewhere.
class LayerPacker {
 public:
  // Throws what products::DefaultKernel does.
  LayerPacker();
  LayerPacker(const LayerPacker&) = delete;
  LayerPacker& operator=(const LayerPacker&) = delete;

  // For the constructor of a DecoderModel, and not after the packer has gone.
  LinearMaker Maker();

  bool packed_all() const { return kept_ == 0; }
  size_t bytes() const { return bytes_; }  // of the packed copies
  // Those of layers that are still there: not of a model that was given up.
  std::vector<WeightCopy> Copies() const;
  // "97 layers packed for avx512vnni, 61 MB", and why a layer was not.
  std::string Description() const;

 private:
  std::unique_ptr<Linear> Make(const ctranslate2::models::Model& model, const LinearSpec& spec);
  std::unique_ptr<Linear> Pack(const ctranslate2::models::Model& model, const LinearSpec& spec,
                               const Linear& library);

  struct Packed {
    std::string variable;
    std::weak_ptr<const products::PackedLinear> layer;
  };

  const products::Kernel* kernel_;  // of the layers, whose weights are of one type
  products::SharedPages pages_;
  std::vector<Packed> copies_;
  size_t kept_ = 0;   // layers that stay the library's
  size_t bytes_ = 0;  // of the packed copies
  std::string why_;   // the first of those stays
};

}  // namespace ct2triton
