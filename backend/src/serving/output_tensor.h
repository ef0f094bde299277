// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "config/model_config.h"
#include "rows/row_tensors.h"
#include "triton/response.h"

namespace ct2triton {

// Adds an output to a response. Integers are written in the type that `spec` declares.
void WriteTensor(const TensorSpec& spec, const Matrix<int64_t>& matrix, Response* response);
void WriteTensor(const TensorSpec& spec, const Matrix<float>& matrix, Response* response);
void WriteTensor(const TensorSpec& spec, const Matrix<std::string>& matrix, Response* response);

}  // namespace ct2triton
