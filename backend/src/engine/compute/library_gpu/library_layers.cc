// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/library_gpu/library_layers.h"

#include "ctranslate2_ops.h"
#include "engine/calls/library/library_check.h"
#include "error.h"

namespace ct2triton {
namespace {

using ctranslate2::DataType;
using ctranslate2::StorageView;
using ctranslate2::layers::Dense;

constexpr auto kCpu = ctranslate2::Device::CPU;
constexpr const char* kDenseWithResidual =
    "_ZNK11ctranslate26layers5DenseclERKNS_11StorageViewERS2_PS3_";
constexpr const char* kDenseAlone = "_ZNK11ctranslate26layers5DenseclERKNS_11StorageViewERS2_";

bool DenseTakesResidual() {
  static const bool takes = LibraryHasSymbol(kDenseWithResidual);
  return takes;
}

// Both list them in the same order.
using ctranslate2::ops::ActivationType;
using products::Activation;
static_assert(static_cast<int>(ActivationType::ReLU) == static_cast<int>(Activation::kRelu));
static_assert(static_cast<int>(ActivationType::GELUTanh) ==
              static_cast<int>(Activation::kGeluTanh));
static_assert(static_cast<int>(ActivationType::Swish) == static_cast<int>(Activation::kSwish));
static_assert(static_cast<int>(ActivationType::GELU) == static_cast<int>(Activation::kGelu));
static_assert(static_cast<int>(ActivationType::GELUSigmoid) ==
              static_cast<int>(Activation::kGeluSigmoid));
static_assert(static_cast<int>(ActivationType::Tanh) == static_cast<int>(Activation::kTanh));
static_assert(static_cast<int>(ActivationType::Sigmoid) == static_cast<int>(Activation::kSigmoid));

}  // namespace

// As nm shows them; tests/core/test_loop_library.py holds the list against the binary.
const std::vector<const char*> kLayerSymbols = {
    "_ZN11ctranslate211StorageView4viewEPvSt6vectorIlSaIlEE",
    "_ZN11ctranslate211StorageView6bufferEv",
    "_ZN11ctranslate211StorageViewC1ENS_8DataTypeENS_6DeviceE",
    "_ZN11ctranslate26layers10EmbeddingsC1ERKNS_6models5ModelERKNSt7__cxx1112basic_"
    "stringIcSt11char_traitsIcESaIcEEE",
    "_ZN11ctranslate26layers10EmbeddingsD1Ev",
    "_ZN11ctranslate26layers5Dense14select_weightsEPKNS_11StorageViewES4_",
    "_ZN11ctranslate26layers5DenseC1ERKNS_6models5ModelERKNSt7__cxx1112basic_"
    "stringIcSt11char_traitsIcESaIcEEEPKNS_3ops14ActivationTypeEb",
    "_ZN11ctranslate26layers5DenseD1Ev",
    "_ZN11ctranslate26layers9LayerNormC1ERKNS_6models5ModelERKNSt7__cxx1112basic_"
    "stringIcSt11char_traitsIcESaIcEEE",
    "_ZN11ctranslate26layers9LayerNormD1Ev",
    "_ZN11ctranslate26models21EncoderDecoderReplica6encodeERKSt6vectorIS2_IS2_ImSaImEESaIS4_"
    "EESaIS6_EERNS_11StorageViewESC_",
    "_ZNK11ctranslate211StorageView4dataIfEEPKT_v",
    "_ZNK11ctranslate211StorageView4dataIiEEPKT_v",
    "_ZNK11ctranslate23ops3AddclERKNS_11StorageViewES4_RS2_",
    "_ZNK11ctranslate26layers10EmbeddingsclERKNS_11StorageViewERS2_",
    "_ZNK11ctranslate26layers5Dense11output_sizeEv",
    "_ZNK11ctranslate26layers5Dense11output_typeEv",
    "_ZNK11ctranslate26layers9LayerNormclERKNS_11StorageViewERS2_",
};

void RequireLayers() {
  const auto refuse = [](const std::string& symbol) {
    throw Error(ErrorCode::kUnsupported, "CTranslate2 " + LibraryVersion() + " has no symbol " +
                                             symbol + ", which the decode loop calls");
  };
  for (const char* symbol : kLayerSymbols) {
    if (!LibraryHasSymbol(symbol)) refuse(symbol);
  }
  if (!DenseTakesResidual() && !LibraryHasSymbol(kDenseAlone)) refuse(kDenseAlone);
}

void RefuseSize(size_t room) {
  throw Error(ErrorCode::kUnsupported, "a layer of CTranslate2 " + LibraryVersion() +
                                           " is larger than the " + std::to_string(room) +
                                           " bytes that the decode loop has room for");
}

LibraryLinear::LibraryLinear(const ctranslate2::models::Model& model, const LibraryLinearSpec& spec,
                             ctranslate2::Device device)
    : model_(model),
      device_(device),
      spec_(spec),
      activation_(spec.activation ? std::optional(static_cast<ActivationType>(*spec.activation))
                                  : std::nullopt),
      dense_(model, spec_.scope, activation_ ? &*activation_ : nullptr, spec_.layer_out) {}

void LibraryLinear::ApplyTo(const StorageView& in, const StorageView* residual,
                            StorageView* out) const {
  if (DenseTakesResidual()) {
    (*dense_)(in, *out, residual);
    return;
  }
  (*dense_)(in, *out);
  if (residual != nullptr) ctranslate2::ops::Add()(*out, *residual, *out);
}

std::unique_ptr<LibraryLinear> LibraryLinear::Select(const std::vector<int64_t>& outputs) const {
  auto selected = std::make_unique<LibraryLinear>(model_, spec_, device_);
  const std::vector<int32_t> index(outputs.begin(), outputs.end());
  StorageView view(DataType::INT32, kCpu);
  view.view(const_cast<int32_t*>(index.data()), {static_cast<long>(index.size())});
  const StorageView there = view.to(device_);
  selected->dense_->select_weights(&there, nullptr);
  selected->selected_ = true;
  return selected;
}

size_t LibraryLinear::bytes() const {
  const auto* weight = model_.get_variable_if_exists(spec_.scope + "/weight");
  return selected_ && weight != nullptr ? outputs() * inputs() * weight->item_size() : 0;
}

}  // namespace ct2triton
