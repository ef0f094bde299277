// SPDX-License-Identifier: Apache-2.0
#include "library_linear.h"

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
    "_ZN11ctranslate211StorageViewC1ENS_8DataTypeENS_6DeviceE",
    "_ZN11ctranslate26layers5Dense14select_weightsEPKNS_11StorageViewES4_",
    "_ZN11ctranslate26layers5DenseC1ERKNS_6models5ModelERKNSt7__cxx1112basic_"
    "stringIcSt11char_traitsIcESaIcEEEPKNS_3ops14ActivationTypeEb",
    "_ZN11ctranslate26layers5DenseD1Ev",
    "_ZNK11ctranslate23ops3AddclERKNS_11StorageViewES4_RS2_",
    "_ZNK11ctranslate26layers5Dense11output_sizeEv",
};

namespace {

const ctranslate2::models::Model& Checked(const ctranslate2::models::Model& model) {
  const auto refuse = [](const std::string& symbol) {
    throw Error(ErrorCode::kUnsupported, "CTranslate2 " + LibraryVersion() + " has no symbol " +
                                             symbol + ", which its linear layer needs");
  };
  for (const char* symbol : kLayerSymbols) {
    if (!LibraryHasSymbol(symbol)) refuse(symbol);
  }
  if (!DenseTakesResidual() && !LibraryHasSymbol(kDenseAlone)) refuse(kDenseAlone);
  return model;
}

}  // namespace

void RefuseSize(size_t room) {
  throw Error(ErrorCode::kUnsupported, "a layer of CTranslate2 " + LibraryVersion() +
                                           " is larger than the " + std::to_string(room) +
                                           " bytes that there is room for");
}

LibraryLinear::LibraryLinear(const ctranslate2::models::Model& model, const std::string& scope,
                             std::optional<Activation> activation)
    : activation_(activation ? std::optional(static_cast<ActivationType>(*activation))
                             : std::nullopt),
      dense_(Checked(model), scope, activation_ ? &*activation_ : nullptr,
             /*is_layer_out=*/false) {}

void LibraryLinear::Apply(const StorageView& in, const StorageView* residual,
                          StorageView* out) const {
  if (DenseTakesResidual()) {
    (*dense_)(in, *out, residual);
    return;
  }
  (*dense_)(in, *out);
  if (residual != nullptr) ctranslate2::ops::Add()(*out, *residual, *out);
}

void LibraryLinear::Select(const std::vector<int64_t>& outputs) {
  const std::vector<int32_t> index(outputs.begin(), outputs.end());
  StorageView view(DataType::INT32, kCpu);
  view.view(const_cast<int32_t*>(index.data()), {static_cast<long>(index.size())});
  dense_->select_weights(&view, nullptr);
}

}  // namespace ct2triton
