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

// A view of the IDs of an input, valid until the request is released. IDs in several buffers are
// joined. Throws Error(kInvalidArgument) for other types, and for memory that the CPU cannot read.
IdTensor ReadIds(const Input& input);

// The bytes of all inputs of a request.
uint64_t InputBytes(const RequestHandle& request);

// A tensor of strings, in row-major order.
struct StringTensor {
  std::vector<int64_t> shape;
  std::vector<std::string_view> values;      // in `bytes`
  std::shared_ptr<const std::string> bytes;  // as received
};

// Whether any value of a BOOL tensor is true. Throws Error(kInvalidArgument) for other types.
bool ReadFlag(const Input& input);

// Uses at most a small multiple of the input's memory. Throws Error(kInvalidArgument) if the type
// is not BYTES or the lengths of the strings do not match the input's size.
StringTensor ReadStrings(const Input& input);

}  // namespace ct2triton
