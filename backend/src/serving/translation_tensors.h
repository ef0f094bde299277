// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "config/model_config.h"
#include "rows/row_tensors.h"
#include "serving/target_text.h"
#include "triton/response.h"

namespace ct2triton {

using Translations = std::vector<const Translation*>;

// One value of each translation, as a tensor.
template <class Value, class Get>
Matrix<Value> Collect(const std::vector<int64_t>& shape, const Translations& all, const Get& get) {
  Matrix<Value> matrix;
  matrix.shape = shape;
  matrix.values.reserve(all.size());
  for (const Translation* one : all) matrix.values.push_back(static_cast<Value>(get(*one)));
  return matrix;
}

// Writes an output that both complete and partial translations have; false for other outputs.
bool WriteOfEach(const TensorSpec& spec, const std::vector<int64_t>& shape, const Translations& all,
                 Response* response);

}  // namespace ct2triton
