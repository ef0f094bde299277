// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/packed_layers.h"

#include <stdexcept>
#include <utility>

#include "engine/compute/cpu/products/kernel_choice.h"
#include "engine/compute/cpu/products/rounding_probe.h"

namespace ct2triton {
namespace {

using ctranslate2::StorageView;
using ctranslate2::ops::ActivationType;
using products::Activation;

// Both list them in the same order.
static_assert(static_cast<int>(ActivationType::ReLU) == static_cast<int>(Activation::kRelu));
static_assert(static_cast<int>(ActivationType::GELUTanh) ==
              static_cast<int>(Activation::kGeluTanh));
static_assert(static_cast<int>(ActivationType::Swish) == static_cast<int>(Activation::kSwish));
static_assert(static_cast<int>(ActivationType::GELU) == static_cast<int>(Activation::kGelu));
static_assert(static_cast<int>(ActivationType::GELUSigmoid) ==
              static_cast<int>(Activation::kGeluSigmoid));
static_assert(static_cast<int>(ActivationType::Tanh) == static_cast<int>(Activation::kTanh));
static_assert(static_cast<int>(ActivationType::Sigmoid) == static_cast<int>(Activation::kSigmoid));

Activation ActivationOf(const LinearSpec& spec) {
  return spec.activation ? static_cast<Activation>(*spec.activation) : Activation::kNone;
}

// The elements of a variable; null where it is absent, of another type, or of another size.
template <typename T>
const T* Elements(const StorageView* variable, long size) {
  if (variable == nullptr) return nullptr;
  try {
    return variable->dim(0) == size ? variable->data<T>() : nullptr;
  } catch (const std::invalid_argument&) {  // another type, or a scalar
    return nullptr;
  }
}

// The weights of a layer, plain, of a type that kernels take; none where it has no such ones. On
// processors of Intel the library may have replaced them by packed ones of its own.
std::optional<products::LinearWeights> FindWeights(const StorageView* weight,
                                                   const StorageView* scale, long outputs) {
  using products::WeightType;
  if (const auto* floats = Elements<float>(weight, outputs)) {
    return products::LinearWeights{WeightType::kFloat32, floats, nullptr, nullptr, outputs, 0};
  }
  const auto* bytes = Elements<signed char>(weight, outputs);
  const auto* scales = Elements<float>(scale, outputs);
  if (bytes == nullptr || scales == nullptr) return std::nullopt;
  return products::LinearWeights{WeightType::kInt8, bytes, scales, nullptr, outputs, 0};
}

// What each thread quantizes into.
products::QuantizedRows& Scratch() {
  thread_local products::QuantizedRows rows;
  return rows;
}

}  // namespace

PackedLayer::PackedLayer(std::shared_ptr<const products::PackedLinear> layer,
                         products::Rounding rounding, Activation activation)
    : layer_(std::move(layer)), rounding_(rounding), activation_(activation) {}

void PackedLayer::Apply(const float* in, size_t rows, float* out, const float* residual) const {
  auto& quantized = Scratch();
  quantized.Assign(layer_->kernel(), rounding_, in, static_cast<int64_t>(rows), layer_->inputs());
  layer_->Apply(quantized, out, activation_, residual);
}

std::unique_ptr<Linear> PackedLayer::Select(const std::vector<int64_t>& outputs) const {
  auto selected = std::make_shared<const products::PackedLinear>(layer_->Select(outputs));
  return std::make_unique<PackedLayer>(std::move(selected), rounding_, activation_);
}

void PackedLayer::Choose(const float* in, const std::vector<products::ChoiceRules>& rules,
                         products::Choice* choices) const {
  auto& quantized = Scratch();
  quantized.Assign(layer_->kernel(), rounding_, in, static_cast<int64_t>(rules.size()),
                   layer_->inputs());
  layer_->Choose(quantized, rules, choices);
}

LayerPacker::LayerPacker() : kernel_(&products::DefaultKernel(products::WeightType::kInt8)) {}

LinearMaker LayerPacker::Maker() {
  return [this](const auto& model, const LinearSpec& spec) { return Make(model, spec); };
}

std::vector<WeightCopy> LayerPacker::Copies() const {
  std::vector<WeightCopy> copies;
  for (const Packed& copy : copies_) {
    if (auto layer = copy.layer.lock()) copies.push_back({copy.variable, std::move(layer)});
  }
  return copies;
}

std::string LayerPacker::Description() const {
  std::string text = std::to_string(copies_.size()) + " layers packed for " + kernel_->name + ", " +
                     std::to_string(bytes_ >> 20) + " MiB";
  if (kept_ > 0) text += "; " + std::to_string(kept_) + " are CTranslate2's: " + why_;
  return text;
}

std::unique_ptr<Linear> LayerPacker::Make(const ctranslate2::models::Model& model,
                                          const LinearSpec& spec) {
  std::unique_ptr<Linear> library = std::make_unique<LibraryLinear>(model, spec);
  if (auto packed = Pack(model, spec, *library)) return packed;
  ++kept_;
  return library;
}

std::unique_ptr<Linear> LayerPacker::Pack(const ctranslate2::models::Model& model,
                                          const LinearSpec& spec, const Linear& library) {
  const auto refuse = [&](const char* reason) {
    if (why_.empty()) why_ = spec.scope + " " + reason;
    return nullptr;
  };
  const auto outputs = static_cast<long>(library.outputs());
  const auto* variable = model.get_variable_if_exists(spec.scope + "/weight");
  const auto* scale = model.get_variable_if_exists(spec.scope + "/weight_scale");
  auto weights = FindWeights(variable, scale, outputs);
  if (!weights) return refuse("has no plain int8 or float32 weights");
  const auto* bias_variable = model.get_variable_if_exists(spec.scope + "/bias");
  weights->bias = Elements<float>(bias_variable, outputs);
  if (bias_variable != nullptr && weights->bias == nullptr) {
    return refuse("has a bias of another type");
  }
  weights->inputs = static_cast<int64_t>(spec.inputs);
  if (variable->dim(1) != weights->inputs) return refuse("has weights of another size");

  kernel_ = &products::DefaultKernel(weights->type);
  auto layer = std::make_shared<const products::PackedLinear>(*weights, *kernel_, &pages_);
  const auto probe = products::RoundingProbe(weights->inputs);
  std::vector<float> expected(products::kProbeRows * library.outputs());
  library.Apply(probe.data(), products::kProbeRows, expected.data(), nullptr);
  const auto rounding = products::FindRounding(*layer, expected.data(), ActivationOf(spec));
  if (!rounding) return refuse("differs from the library's layer in a trial");
  bytes_ += layer->bytes();
  copies_.push_back({spec.scope + "/weight", layer});
  return std::make_unique<PackedLayer>(std::move(layer), *rounding, ActivationOf(spec));
}

}  // namespace ct2triton
