// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/layers.h"

#include <algorithm>

#include "ctranslate2_ops.h"
#include "engine/calls/library_check.h"
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

// A tensor of the library over memory of ours. The library only reads what is const here.
class TensorView {
 public:
  TensorView(const float* data, size_t rows, size_t columns)
      : TensorView(DataType::FLOAT32, data, {static_cast<long>(rows), static_cast<long>(columns)}) {
  }
  TensorView(const int32_t* data, size_t count)
      : TensorView(DataType::INT32, data, {static_cast<long>(count)}) {}

  const StorageView& operator*() const { return view_; }
  // For a result, which the library writes to the memory it finds, as long as its size fits.
  StorageView& Result() { return view_; }
  void RequireInPlace(const void* data) {
    if (view_.buffer() == data) return;
    throw Error(ErrorCode::kInternal,
                "CTranslate2 has put the result of a layer in another place than asked for");
  }

 private:
  TensorView(DataType type, const void* data, std::vector<long> shape) : view_(type, kCpu) {
    view_.view(const_cast<void*>(data), std::move(shape));
  }

  StorageView view_;
};

bool DenseTakesResidual() {
  static const bool takes = LibraryHasSymbol(kDenseWithResidual);
  return takes;
}

const ctranslate2::ops::ActivationType* Pointer(
    const std::optional<ctranslate2::ops::ActivationType>& activation) {
  return activation ? &*activation : nullptr;
}

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
    "_ZNK11ctranslate211StorageView4dataIaEEPKT_v",
    "_ZNK11ctranslate211StorageView4dataIfEEPKT_v",
    "_ZNK11ctranslate211StorageView4dataIiEEPKT_v",
    "_ZNK11ctranslate211StorageView4dataIsEEPKT_v",
    "_ZNK11ctranslate23ops3AddclERKNS_11StorageViewES4_RS2_",
    "_ZNK11ctranslate26layers10Embeddings11output_sizeEv",
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

LibraryLinear::LibraryLinear(const ctranslate2::models::Model& model, const LinearSpec& spec,
                             ctranslate2::Device device)
    : model_(model),
      device_(device),
      spec_(spec),
      dense_(model, spec_.scope, Pointer(spec_.activation), spec_.layer_out) {
  if (device != kCpu || dense_->output_type() == DataType::FLOAT32) return;
  throw Error(ErrorCode::kUnsupported, "the decode loop computes in float32 between the layers, " +
                                           spec.scope + " does not");
}

const LibraryLinear& LibraryLinear::Of(const Linear& linear) {
  if (const auto* library = dynamic_cast<const LibraryLinear*>(&linear)) return *library;
  throw Error(ErrorCode::kInternal, "a product is not CTranslate2's, which its device needs");
}

void LibraryLinear::Apply(const float* in, size_t rows, float* out, const float* residual) const {
  const TensorView input(in, rows, spec_.inputs);
  const TensorView added(residual, rows, outputs());
  TensorView output(out, rows, outputs());
  ApplyTo(*input, residual != nullptr ? &*added : nullptr, &output.Result());
  output.RequireInPlace(out);
}

void LibraryLinear::ApplyTo(const StorageView& in, const StorageView* residual,
                            StorageView* out) const {
  if (DenseTakesResidual()) {
    (*dense_)(in, *out, residual);
    return;
  }
  (*dense_)(in, *out);
  if (residual != nullptr) ctranslate2::ops::Add()(*out, *residual, *out);
}

std::unique_ptr<Linear> LibraryLinear::Select(const std::vector<int64_t>& outputs) const {
  auto selected = std::make_unique<LibraryLinear>(model_, spec_, device_);
  const std::vector<int32_t> index(outputs.begin(), outputs.end());
  const TensorView view(index.data(), index.size());
  if (device_ == kCpu) {
    selected->dense_->select_weights(&*view, nullptr);
  } else {
    const StorageView there = (*view).to(device_);
    selected->dense_->select_weights(&there, nullptr);
  }
  selected->selected_ = true;
  return selected;
}

size_t LibraryLinear::bytes() const {
  const auto* weight = model_.get_variable_if_exists(spec_.scope + "/weight");
  return selected_ && weight != nullptr ? outputs() * inputs() * weight->item_size() : 0;
}

Norm::Norm(const ctranslate2::models::Model& model, const std::string& scope, size_t size)
    : size_(size), norm_(model, scope) {}

void Norm::Apply(const float* in, size_t rows, float* out) const {
  const TensorView input(in, rows, size_);
  TensorView output(out, rows, size_);
  ApplyTo(*input, &output.Result());
  output.RequireInPlace(out);
}

void Norm::ApplyTo(const StorageView& in, StorageView* out) const { (*norm_)(in, *out); }

LibraryEmbeddings::LibraryEmbeddings(const ctranslate2::models::Model& model,
                                     const std::string& scope)
    : embeddings_(model, scope) {}

void LibraryEmbeddings::Apply(const std::vector<int32_t>& ids, float* out) const {
  const TensorView input(ids.data(), ids.size());
  TensorView output(out, ids.size(), size());
  ApplyTo(*input, &output.Result());
  output.RequireInPlace(out);
}

const LibraryEmbeddings& LibraryEmbeddings::Of(const TokenEmbeddings& embeddings) {
  if (const auto* library = dynamic_cast<const LibraryEmbeddings*>(&embeddings)) return *library;
  throw Error(ErrorCode::kInternal, "embeddings are not CTranslate2's, which their device needs");
}

void LibraryEmbeddings::ApplyTo(const StorageView& ids, StorageView* out) const {
  (*embeddings_)(ids, *out);
}

}  // namespace ct2triton
