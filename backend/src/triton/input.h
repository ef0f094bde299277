// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rows/row_tensors.h"
#include "triton_c_api.h"

namespace ct2triton {

// One input tensor of a request. Shapes are those that the client sent.
struct Input {
  TRITONBACKEND_Input* handle = nullptr;
  std::string name;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  uint64_t byte_size = 0;
  uint32_t buffer_count = 0;
};

Input DescribeInput(TRITONBACKEND_Input* handle);

// The ids of an input where they lie: valid for as long as the request is ours. They are joined
// where they came in several buffers.
// Throws Error(kInvalidArgument): a type that is no integer, memory that the CPU cannot read.
IdTensor ReadIds(const Input& input);

// A tensor of strings, in row-major order.
struct StringTensor {
  std::vector<int64_t> shape;
  std::vector<std::string> values;
};

// Throws Error(kInvalidArgument): a type that is not BYTES, lengths that lie.
StringTensor ReadStrings(const Input& input);

}  // namespace ct2triton
