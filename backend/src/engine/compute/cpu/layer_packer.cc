// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/layer_packer.h"

#include <vector>

#include "engine/compute/cpu/pack_weights.h"
#include "engine/compute/cpu/products/kernel_choice.h"
#include "engine/compute/cpu/products/quantized_rows.h"
#include "error.h"

namespace ct2triton {
namespace {

using products::PackedLinear;

// Rounding of CTranslate2's wheels: on x86-64, where they multiply unsigned bytes, their compiler
// contracted the product with the sum.
#if defined(__x86_64__)
constexpr auto kRounding = products::Rounding::kOnce;
#else
constexpr auto kRounding = products::Rounding::kSigned;
#endif

// A layer of a model with its weights packed once, see products/. With int8 weights, its outputs
// are bit-identical to CTranslate2's layer.
class PackedLayer final : public Linear {
 public:
  PackedLayer(std::shared_ptr<const PackedLinear> layer, Activation activation)
      : layer_(std::move(layer)), activation_(activation) {}

  size_t inputs() const override { return static_cast<size_t>(layer_->inputs()); }
  size_t outputs() const override { return static_cast<size_t>(layer_->outputs()); }
  size_t bytes() const override { return layer_->bytes(); }
  void Apply(const float* in, size_t rows, float* out, const float* residual) const override {
    layer_->Apply(Quantized(in, rows), out, activation_, residual);
  }
  void Choose(const float* in, const std::vector<products::ChoiceRules>& rules,
              products::ChosenLogit* choices) const override {
    layer_->Choose(Quantized(in, rules.size()), rules, choices);
  }
  std::unique_ptr<Linear> Select(const std::vector<int64_t>& outputs) const override {
    auto selected = std::make_shared<const PackedLinear>(layer_->Select(outputs));
    return std::make_unique<PackedLayer>(std::move(selected), activation_);
  }

 private:
  const products::QuantizedRows& Quantized(const float* in, size_t rows) const {
    thread_local products::QuantizedRows quantized;
    quantized.Assign(layer_->kernel(), kRounding, in, static_cast<int64_t>(rows), layer_->inputs());
    return quantized;
  }

  const std::shared_ptr<const PackedLinear> layer_;
  const Activation activation_;
};

products::WeightType WeightTypeOf(ElementType type) {
  if (type == ElementType::kInt8) return products::WeightType::kInt8;
  if (type == ElementType::kFloat32) return products::WeightType::kFloat32;
  throw Error(ErrorCode::kUnsupported,
              std::string("the decode loop computes with int8 or float32 weights, not ") +
                  ElementName(type));
}

}  // namespace

LayerPacker::LayerPacker(const ModelFile& file, ElementType type, size_t threads)
    : file_(file),
      type_(type),
      threads_(threads),
      kernel_(products::DefaultKernel(WeightTypeOf(type))) {}

std::unique_ptr<Linear> LayerPacker::Make(const LinearSpec& spec) {
  return std::make_unique<PackedLayer>(Pack(spec.scope), spec.activation);
}

Embeddings LayerPacker::Table(const std::string& scope) {
  const auto found = tables_.find(KeyOf(scope));
  if (found == tables_.end()) return Embeddings(Pack(scope));
  return Embeddings(found->second);
}

LayerPacker::Packed LayerPacker::Pack(const std::string& scope) {
  auto packed = PackWeights(file_, scope, type_, &pages_, threads_);
  ++layers_;
  bytes_ += packed->bytes();
  tables_[KeyOf(scope)] = packed;
  return packed;
}

LayerPacker::Key LayerPacker::KeyOf(const std::string& scope) const {
  return {file_.Find(scope + "/weight"), file_.Find(scope + "/weight_scale")};
}

std::string LayerPacker::Description() const {
  return std::to_string(layers_) + " layers packed for " + kernel_.name + ", " +
         std::to_string(bytes_ >> 20) + " MiB";
}

}  // namespace ct2triton
