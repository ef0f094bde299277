// SPDX-License-Identifier: Apache-2.0
#include "triton/input.h"

#include <memory>
#include <utility>

#include "error.h"
#include "triton/data_type.h"
#include "triton/guard.h"

namespace ct2triton {
namespace {

struct Buffer {
  const void* data = nullptr;
  uint64_t byte_size = 0;
};

Buffer ReadBuffer(const Input& input, uint32_t index) {
  Buffer buffer;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
  ThrowIfError(TRITONBACKEND_InputBuffer(input.handle, index, &buffer.data, &buffer.byte_size,
                                         &memory_type, &memory_type_id),
               "reading an input");
  if (memory_type == TRITONSERVER_MEMORY_GPU) {
    ThrowInvalid(input.name + " is in GPU memory; send it from CPU memory");
  }
  return buffer;
}

// `each` multiplied by all dimensions.
uint64_t ShapeTimes(const Input& input, uint64_t each) {
  for (const int64_t dim : input.shape) {
    if (dim < 0 || __builtin_mul_overflow(each, static_cast<uint64_t>(dim), &each)) {
      ThrowInvalid(input.name + ": bad dimension " + std::to_string(dim));
    }
  }
  return each;
}

// Number of elements of the shape, checked against the bytes received.
size_t ElementCount(const Input& input, size_t element_bytes) {
  const uint64_t bytes = ShapeTimes(input, element_bytes);
  if (bytes != input.byte_size) {
    ThrowInvalid(input.name + ": its shape needs " + std::to_string(bytes) + " bytes, " +
                 std::to_string(input.byte_size) + " came");
  }
  return bytes / element_bytes;
}

// Joins the buffers, because an element may be split between two of them.
std::shared_ptr<const std::string> JoinBuffers(const Input& input) {
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(input.byte_size);
  for (uint32_t i = 0; i < input.buffer_count; ++i) {
    const Buffer buffer = ReadBuffer(input, i);
    bytes->append(static_cast<const char*>(buffer.data), buffer.byte_size);
  }
  return bytes;
}

}  // namespace

Input DescribeInput(TRITONBACKEND_Input* handle) {
  Input input;
  input.handle = handle;
  const char* name = nullptr;
  const int64_t* shape = nullptr;
  uint32_t rank = 0;
  ThrowIfError(TRITONBACKEND_InputProperties(handle, &name, &input.type, &shape, &rank,
                                             &input.byte_size, &input.buffer_count),
               "reading an input");
  input.name = name;
  input.shape.assign(shape, shape + rank);
  return input;
}

IdTensor ReadIds(const Input& input) {
  const auto type = IntegerTypeOf(input.type);
  if (!type) {
    ThrowInvalid(input.name + " is of type " + TRITONSERVER_DataTypeString(input.type) +
                 ", it must be of an integer type");
  }
  const size_t count = ElementCount(input, ByteSize(*type));
  IdTensor tensor;
  tensor.shape = input.shape;
  Buffer whole;
  if (input.buffer_count == 1) {
    whole = ReadBuffer(input, 0);
  } else {
    tensor.joined = JoinBuffers(input);
    whole = {tensor.joined->data(), tensor.joined->size()};
  }
  if (whole.byte_size != input.byte_size) ThrowInvalid(input.name + ": its data is incomplete");
  tensor.values = IdView(whole.data, count, *type);
  return tensor;
}

bool ReadFlag(const Input& input) {
  if (input.type != TRITONSERVER_TYPE_BOOL) {
    ThrowInvalid(input.name + " is of type " + TRITONSERVER_DataTypeString(input.type) +
                 ", it must be of type BOOL");
  }
  ElementCount(input, 1);
  const auto bytes = JoinBuffers(input);
  return bytes->find_first_not_of('\0') != std::string::npos;
}

StringTensor ReadStrings(const Input& input) {
  if (input.type != TRITONSERVER_TYPE_BYTES) {
    ThrowInvalid(input.name + " is of type " + TRITONSERVER_DataTypeString(input.type) +
                 ", it must be of type BYTES");
  }
  constexpr size_t kLengthBytes = 4;  // little-endian, before each string
  const uint64_t count = ShapeTimes(input, 1);
  const auto refuse_count = [&] {
    ThrowInvalid(input.name + ": its shape needs " + std::to_string(count) +
                 " strings, other data came");
  };
  if (count > input.byte_size / kLengthBytes) refuse_count();
  StringTensor tensor;
  tensor.shape = input.shape;
  tensor.bytes = JoinBuffers(input);
  tensor.values.reserve(count);
  std::string_view rest = *tensor.bytes;
  while (rest.size() >= kLengthBytes && tensor.values.size() < count) {
    uint32_t size = 0;
    for (size_t i = kLengthBytes; i-- > 0;) size = size << 8 | static_cast<unsigned char>(rest[i]);
    rest.remove_prefix(kLengthBytes);
    if (size > rest.size()) ThrowInvalid(input.name + ": a string is longer than the data");
    tensor.values.push_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  if (tensor.values.size() != count || !rest.empty()) refuse_count();
  return tensor;
}

uint64_t InputBytes(const RequestHandle& request) {
  uint64_t bytes = 0;
  for (TRITONBACKEND_Input* handle : request.Inputs()) bytes += DescribeInput(handle).byte_size;
  return bytes;
}

}  // namespace ct2triton
