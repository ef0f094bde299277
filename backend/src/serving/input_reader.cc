// SPDX-License-Identifier: Apache-2.0
#include "serving/input_reader.h"

#include <cstdint>
#include <string>
#include <utility>

#include "config/parse_value.h"
#include "triton/data_type.h"
#include "triton/guard.h"

namespace ct2triton {
namespace {

[[noreturn]] void Refuse(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, text);
}

struct Input {
  TRITONBACKEND_Input* handle = nullptr;
  std::string name;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  uint64_t byte_size = 0;
  uint32_t buffer_count = 0;
};

struct Buffer {
  const void* data = nullptr;
  uint64_t byte_size = 0;
};

Input Describe(TRITONBACKEND_Input* handle) {
  Input input;
  input.handle = handle;
  const char* name = nullptr;
  const int64_t* shape = nullptr;
  uint32_t rank = 0;
  Check(TRITONBACKEND_InputProperties(handle, &name, &input.type, &shape, &rank, &input.byte_size,
                                      &input.buffer_count),
        "reading an input");
  input.name = name;
  input.shape.assign(shape, shape + rank);
  return input;
}

Buffer ReadBuffer(const Input& input, uint32_t index) {
  Buffer buffer;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
  Check(TRITONBACKEND_InputBuffer(input.handle, index, &buffer.data, &buffer.byte_size,
                                  &memory_type, &memory_type_id),
        "reading an input");
  if (memory_type == TRITONSERVER_MEMORY_GPU) {
    Refuse(input.name + " lies in GPU memory; send it from CPU memory");
  }
  return buffer;
}

// Elements that the shape promises, checked against the bytes that are there.
size_t ElementCount(const Input& input) {
  uint64_t bytes = IntegerByteSize(input.type);
  for (const int64_t dim : input.shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes)) {
      Refuse(input.name + ": bad dimension " + std::to_string(dim));
    }
  }
  if (bytes != input.byte_size) {
    Refuse(input.name + ": its shape needs " + std::to_string(bytes) + " bytes, " +
           std::to_string(input.byte_size) + " came");
  }
  return bytes / IntegerByteSize(input.type);
}

IdTensor ReadIds(const Input& input) {
  if (IntegerByteSize(input.type) == 0) {
    Refuse(input.name + " is of type " + TRITONSERVER_DataTypeString(input.type) +
           ", it must be of an integer type");
  }
  IdTensor tensor;
  tensor.shape = input.shape;
  const size_t count = ElementCount(input);
  if (input.buffer_count == 1) {
    const Buffer buffer = ReadBuffer(input, 0);
    if (buffer.byte_size != input.byte_size) Refuse(input.name + ": its data is incomplete");
    tensor.values = WidenIntegers(buffer.data, count, input.type);
    return tensor;
  }
  // An element may lie across the border of two buffers: join them first.
  std::string bytes;
  bytes.reserve(input.byte_size);
  for (uint32_t i = 0; i < input.buffer_count; ++i) {
    const Buffer buffer = ReadBuffer(input, i);
    bytes.append(static_cast<const char*>(buffer.data), buffer.byte_size);
  }
  if (bytes.size() != input.byte_size) Refuse(input.name + ": its data is incomplete");
  tensor.values = WidenIntegers(bytes.data(), count, input.type);
  return tensor;
}

}  // namespace

RequestTensors ReadTensors(const Request& request, const ModelConfig& config) {
  RequestTensors tensors;
  bool has_input_ids = false;
  for (TRITONBACKEND_Input* handle : request.Inputs()) {
    Input input = Describe(handle);
    // Triton leaves the batch dimension out of the shape where it is 0: a request of no rows.
    if (config.max_batch_size > 0 && input.shape.size() == 1)
      input.shape.insert(input.shape.begin(), 0);
    if (input.name == "INPUT_IDS") {
      tensors.input_ids = ReadIds(input);
      has_input_ids = true;
    } else if (input.name == "TARGET_PREFIX") {
      tensors.target_prefix = ReadIds(input);
    } else if (input.name == "INPUT_LENGTHS") {
      tensors.input_lengths = ReadIds(input);
    } else if (input.name == "PREFIX_LENGTHS") {
      tensors.prefix_lengths = ReadIds(input);
    } else {
      Refuse("unknown input " + Quote(input.name));
    }
  }
  if (!has_input_ids) Refuse("INPUT_IDS is missing");
  return tensors;
}

std::optional<DecodingOptions> ReadOptions(const Request& request, bool scores_wanted,
                                           const ModelConfig& config) {
  const auto parameters = request.Parameters();
  const bool turn_scores_on = scores_wanted && !config.decoding.return_scores;
  if (parameters.empty() && !turn_scores_on) return std::nullopt;
  DecodingOptions options = config.decoding;
  for (const auto& [name, value] : parameters) {
    SetRequestParameter(name, value, config.engine, &options);
  }
  if (scores_wanted) options.return_scores = true;
  return options;
}

}  // namespace ct2triton
