// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rows/row_tensors.h"
#include "triton/request.h"
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

// A view of the ids of an input, valid until the request is released. They are joined if they are
// in several buffers. Throws Error(kInvalidArgument) for other types, and for memory that the CPU
// cannot read.
IdTensor ReadIds(const Input& input);

// The bytes of all inputs of a request.
uint64_t InputBytes(const RequestHandle& request);

// A tensor of strings, in row-major order.
struct StringTensor {
  std::vector<int64_t> shape;
  std::vector<std::string_view> values;      // in `bytes`
  std::shared_ptr<const std::string> bytes;  // as received
};

// Whether any value of a tensor of BOOL is true. Throws Error(kInvalidArgument): another type.
bool ReadFlag(const Input& input);

// Takes at most a small multiple of the input's memory. Throws Error(kInvalidArgument): a type
// that is not BYTES, or lengths that do not fit.
StringTensor ReadStrings(const Input& input);

}  // namespace ct2triton
