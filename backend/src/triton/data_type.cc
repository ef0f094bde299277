// SPDX-License-Identifier: Apache-2.0
#include "triton/data_type.h"

#include <cstring>

#include "error.h"

namespace ct2triton {
namespace {

template <typename T>
void Narrow(const std::vector<int64_t>& values, void* data) {
  char* bytes = static_cast<char*>(data);
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
  }
}

}  // namespace

TRITONSERVER_DataType DataTypeFromConfig(const std::string& name) {
  static const struct {
    const char* name;
    TRITONSERVER_DataType type;
  } kTypes[] = {
      {"TYPE_UINT8", TRITONSERVER_TYPE_UINT8},   {"TYPE_UINT16", TRITONSERVER_TYPE_UINT16},
      {"TYPE_UINT32", TRITONSERVER_TYPE_UINT32}, {"TYPE_UINT64", TRITONSERVER_TYPE_UINT64},
      {"TYPE_INT8", TRITONSERVER_TYPE_INT8},     {"TYPE_INT16", TRITONSERVER_TYPE_INT16},
      {"TYPE_INT32", TRITONSERVER_TYPE_INT32},   {"TYPE_INT64", TRITONSERVER_TYPE_INT64},
      {"TYPE_FP32", TRITONSERVER_TYPE_FP32},     {"TYPE_STRING", TRITONSERVER_TYPE_BYTES},
  };
  for (const auto& known : kTypes) {
    if (name == known.name) return known.type;
  }
  return TRITONSERVER_TYPE_INVALID;
}

std::optional<IntegerType> IntegerTypeOf(TRITONSERVER_DataType type) {
  switch (type) {
    case TRITONSERVER_TYPE_UINT8:
      return IntegerType::kUint8;
    case TRITONSERVER_TYPE_UINT16:
      return IntegerType::kUint16;
    case TRITONSERVER_TYPE_UINT32:
      return IntegerType::kUint32;
    case TRITONSERVER_TYPE_UINT64:
      return IntegerType::kUint64;
    case TRITONSERVER_TYPE_INT8:
      return IntegerType::kInt8;
    case TRITONSERVER_TYPE_INT16:
      return IntegerType::kInt16;
    case TRITONSERVER_TYPE_INT32:
      return IntegerType::kInt32;
    case TRITONSERVER_TYPE_INT64:
      return IntegerType::kInt64;
    default:
      return std::nullopt;
  }
}

size_t IntegerByteSize(TRITONSERVER_DataType type) {
  const auto integer = IntegerTypeOf(type);
  return integer ? ByteSize(*integer) : 0;
}

void NarrowIntegers(const std::vector<int64_t>& values, TRITONSERVER_DataType type, void* data) {
  switch (IntegerByteSize(type)) {  // signed and unsigned types have the same bytes
    case 1:
      return Narrow<uint8_t>(values, data);
    case 2:
      return Narrow<uint16_t>(values, data);
    case 4:
      return Narrow<uint32_t>(values, data);
    case 8:
      return Narrow<uint64_t>(values, data);
    default:
      throw Error(ErrorCode::kInternal, "an output of ids is not of an integer type");
  }
}

}  // namespace ct2triton
