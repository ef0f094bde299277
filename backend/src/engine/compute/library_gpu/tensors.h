// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ctranslate2_api.h"

namespace ct2triton {

// Throws Error(kUnsupported), with the symbol, if the loaded CTranslate2 library lacks something
// that is called here. The mangled names: see kTensorSymbols.
void RequireTensors();
extern const std::vector<const char*> kTensorSymbols;

using Tensor = ctranslate2::StorageView;
using TensorShape = std::vector<long>;

// Makes tensors on one device, and others of them, by operations of CTranslate2. Numbers are of one
// type, that of the model's activations; indices and lengths are int32.
class Tensors {
 public:
  Tensors(ctranslate2::Device device, ctranslate2::DataType type) : device_(device), type_(type) {}

  Tensor Empty() const { return {type_, device_}; }
  Tensor Zeros(TensorShape shape) const;
  Tensor Of(const std::vector<int32_t>& numbers, TensorShape shape) const;
  Tensor Of(const std::vector<float>& numbers, TensorShape shape) const;
  // A factor for Scale().
  Tensor Scalar(float number) const;

  // out: the parts, one behind the other along an axis. None may be `out`.
  static void Join(const std::vector<const Tensor*>& parts, int axis, Tensor* out);
  // Parts of these sizes along an axis.
  std::vector<Tensor> Split(const Tensor& whole, long axis, const std::vector<long>& sizes) const;
  // Numbers for Pick(), which one upload serves for many.
  Tensor Numbers(const std::vector<int32_t>& numbers) const;
  // Those with these numbers along the first axis.
  Tensor Pick(const Tensor& whole, const Tensor& numbers) const;
  Tensor Transposed(const Tensor& whole, const std::vector<long>& permutation) const;
  // Of the last two dimensions: scale * a * b, where b may be transposed.
  Tensor Product(const Tensor& a, const Tensor& b, bool transposed, float scale) const;
  // Over the last dimension; lengths: how much of it counts, for each of the others.
  Tensor Softmax(const Tensor& x, const Tensor& lengths) const;
  static void Add(Tensor* x, const Tensor& more);
  static void Scale(Tensor* x, const Tensor& factor);  // of one shape, or a scalar
  // The position of the largest number in each of these rows.
  std::vector<int32_t> Maxima(const Tensor& rows, size_t count) const;

  // The numbers themselves.
  static std::vector<float> Floats(const Tensor& x, size_t count);

 private:
  const ctranslate2::Device device_;
  const ctranslate2::DataType type_;
};

}  // namespace ct2triton
