// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/compute/cpu/products/kernel.h"

namespace ct2triton::products {

// Rows of quantized inputs, usable by all layers with the same input. Keeps its memory, so one
// object per thread serves all steps.
class QuantizedRows {
 public:
  // in: [rows, inputs].
  void Assign(const Kernel& kernel, Rounding rounding, const float* in, int64_t rows,
              int64_t inputs);

  const Kernel& kernel() const { return *kernel_; }
  int64_t rows() const { return rows_; }
  int64_t inputs() const { return inputs_; }
  RowView view() const { return {codes_.data(), stride_, rows_, inverse_.data()}; }

 private:
  const Kernel* kernel_ = &kPlainKernel;
  int64_t rows_ = 0;
  int64_t inputs_ = 0;
  int64_t stride_ = 0;
  std::vector<std::byte> codes_;
  std::vector<float> inverse_;
};

}  // namespace ct2triton::products
