// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/library_gpu/tensors.h"

#include <string>
#include <utility>

#include "ctranslate2_layers.h"
#include "ctranslate2_ops.h"
#include "engine/calls/library/library_check.h"
#include "engine/compute/library_gpu/guarded.h"
#include "error.h"

namespace ct2triton {
namespace {

using ctranslate2::DataType;
namespace ops = ctranslate2::ops;

constexpr auto kCpu = ctranslate2::Device::CPU;

// A tensor over numbers of ours, in the memory of the CPU.
Tensor View(DataType type, const void* numbers, TensorShape shape) {
  Tensor view(type, kCpu);
  view.view(const_cast<void*>(numbers), std::move(shape));
  return view;
}

}  // namespace

// As nm shows them; tests/core/test_loop_library.py holds the list against the binary.
const std::vector<const char*> kTensorSymbols = {
    "_ZN11ctranslate211StorageView4zeroEv",
    "_ZN11ctranslate211StorageView7reshapeESt6vectorIlSaIlEE",
    "_ZN11ctranslate211StorageViewC1ESt6vectorIlSaIlEENS_8DataTypeENS_6DeviceE",
    "_ZN11ctranslate23ops4TopKC1Ell",
    "_ZN11ctranslate23ops4TopKD1Ev",
    "_ZN11ctranslate23ops5SplitC1ElRKSt6vectorIlSaIlEEb",
    "_ZN11ctranslate23ops5SplitD1Ev",
    "_ZN11ctranslate23ops6ConcatC1Ei",
    "_ZN11ctranslate23ops6ConcatD1Ev",
    "_ZN11ctranslate23ops6GatherC1Ell",
    "_ZN11ctranslate23ops6GatherD1Ev",
    "_ZN11ctranslate23ops6MatMulC1Ebbf",
    "_ZN11ctranslate23ops6MatMulD1Ev",
    "_ZN11ctranslate23ops7SoftMaxC1Eb",
    "_ZN11ctranslate23ops7SoftMaxD1Ev",
    "_ZN11ctranslate23ops9TransposeC1ERKSt6vectorIlSaIlEE",
    "_ZN11ctranslate23ops9TransposeD1Ev",
    "_ZNK11ctranslate211StorageView2toENS_6DeviceE",
    "_ZNK11ctranslate211StorageView2toENS_8DataTypeE",
    "_ZNK11ctranslate23ops3MulclERKNS_11StorageViewES4_RS2_",
    "_ZNK11ctranslate23ops4TopKclERKNS_11StorageViewERS2_S5_",
    "_ZNK11ctranslate23ops5SplitclERKNS_11StorageViewERSt6vectorIPS2_SaIS6_EE",
    "_ZNK11ctranslate23ops6ConcatclERKSt6vectorIPKNS_11StorageViewESaIS5_EERS3_",
    "_ZNK11ctranslate23ops6GatherclERKNS_11StorageViewES4_RS2_",
    "_ZNK11ctranslate23ops6MatMulclERKNS_11StorageViewES4_RS2_",
    "_ZNK11ctranslate23ops7SoftMaxclERKNS_11StorageViewEPS3_RS2_",
    "_ZNK11ctranslate23ops9TransposeclERKNS_11StorageViewERS2_",
};

void RequireTensors() {
  for (const char* symbol : kTensorSymbols) {
    if (LibraryHasSymbol(symbol)) continue;
    throw Error(ErrorCode::kUnsupported, "CTranslate2 " + LibraryVersion() + " has no symbol " +
                                             symbol + ", which the decode loop calls on a GPU");
  }
}

Tensor Tensors::Zeros(TensorShape shape) const {
  Tensor zeros(std::move(shape), type_, device_);
  zeros.zero();
  return zeros;
}

Tensor Tensors::Of(const std::vector<int32_t>& numbers, TensorShape shape) const {
  return View(DataType::INT32, numbers.data(), std::move(shape)).to(device_);
}

Tensor Tensors::Of(const std::vector<float>& numbers, TensorShape shape) const {
  return View(DataType::FLOAT32, numbers.data(), std::move(shape)).to(device_).to(type_);
}

// CTranslate2 reads a scalar where the CPU finds it, on every device.
Tensor Tensors::Scalar(float number) const {
  return View(DataType::FLOAT32, &number, {}).to(kCpu).to(type_);
}

void Tensors::Join(const std::vector<const Tensor*>& parts, int axis, Tensor* out) {
  (*Guarded<ops::Concat>(axis))(parts, *out);
}

std::vector<Tensor> Tensors::Split(const Tensor& whole, long axis,
                                   const std::vector<long>& sizes) const {
  std::vector<Tensor> parts;
  std::vector<Tensor*> pointers;
  parts.reserve(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) pointers.push_back(&parts.emplace_back(Empty()));
  (*Guarded<ops::Split>(axis, sizes, /*no_copy=*/false))(whole, pointers);
  return parts;
}

Tensor Tensors::Numbers(const std::vector<int32_t>& numbers) const {
  return Of(numbers, {static_cast<long>(numbers.size())});
}

Tensor Tensors::Pick(const Tensor& whole, const Tensor& numbers) const {
  Tensor picked = Empty();
  (*Guarded<ops::Gather>(0, 0))(whole, numbers, picked);
  return picked;
}

Tensor Tensors::Transposed(const Tensor& whole, const std::vector<long>& permutation) const {
  Tensor transposed = Empty();
  (*Guarded<ops::Transpose>(permutation))(whole, transposed);
  return transposed;
}

Tensor Tensors::Product(const Tensor& a, const Tensor& b, bool transposed, float scale) const {
  Tensor product = Empty();
  (*Guarded<ops::MatMul>(false, transposed, scale))(a, b, product);
  return product;
}

Tensor Tensors::Softmax(const Tensor& x, const Tensor& lengths) const {
  Tensor shares = Empty();
  (*Guarded<ops::SoftMax>(/*log=*/false))(x, &lengths, shares);
  return shares;
}

void Tensors::Add(Tensor* x, const Tensor& more) { ops::Add()(*x, more, *x); }

void Tensors::Scale(Tensor* x, const Tensor& factor) { ops::Mul()(*x, factor, *x); }

std::vector<int32_t> Tensors::Maxima(const Tensor& rows, size_t count) const {
  Tensor values = Empty();
  Tensor positions(DataType::INT32, device_);
  (*Guarded<ops::TopK>(1, -1))(rows, values, positions);
  const Tensor found = positions.to(kCpu);
  const int32_t* first = found.data<int32_t>();
  return {first, first + count};
}

std::vector<float> Tensors::Floats(const Tensor& x, size_t count) {
  const Tensor found = x.to(DataType::FLOAT32).to(kCpu);
  const auto* first = found.data<float>();
  return {first, first + count};
}

}  // namespace ct2triton
