// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/compute/cpu/row_functions.h"
#include "engine/model/model_file.h"

namespace ct2triton {

// A layer norm, or an RMS norm where the model has no shift.
class Norm {
 public:
  // scope: of its variables. epsilon none: CTranslate2's default.
  Norm(const ModelFile& file, const std::string& scope, std::optional<float> epsilon,
       const RowFunctions& functions)
      : gamma_(file.Floats(scope + "/gamma")),
        beta_(file.Floats(scope + "/beta")),
        epsilon_(epsilon.value_or(beta_.empty() ? 1e-6F : 1e-5F)),
        functions_(&functions) {}

  // Both [rows, size]; may be the same.
  void Apply(const float* in, size_t rows, float* out) const {
    const size_t size = gamma_.size();
    for (size_t row = 0; row < rows; ++row, in += size, out += size) {
      if (beta_.empty()) {
        functions_->rms_norm(in, gamma_.data(), epsilon_, size, out);
      } else {
        functions_->layer_norm(in, gamma_.data(), beta_.data(), epsilon_, size, out);
      }
    }
  }

 private:
  std::vector<float> gamma_;
  std::vector<float> beta_;  // empty: none
  float epsilon_;
  const RowFunctions* functions_;
};

}  // namespace ct2triton
