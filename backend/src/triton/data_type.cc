// SPDX-License-Identifier: Apache-2.0
#include "triton/data_type.h"

#include <cstring>

#include "error.h"

namespace ct2triton {
namespace {

struct Integer {
  const char* name;
  TRITONSERVER_DataType type;
  IntegerType integer;
};

constexpr Integer kIntegers[] = {
    {"TYPE_UINT8", TRITONSERVER_TYPE_UINT8, IntegerType::kUint8},
    {"TYPE_UINT16", TRITONSERVER_TYPE_UINT16, IntegerType::kUint16},
    {"TYPE_UINT32", TRITONSERVER_TYPE_UINT32, IntegerType::kUint32},
    {"TYPE_UINT64", TRITONSERVER_TYPE_UINT64, IntegerType::kUint64},
    {"TYPE_INT8", TRITONSERVER_TYPE_INT8, IntegerType::kInt8},
    {"TYPE_INT16", TRITONSERVER_TYPE_INT16, IntegerType::kInt16},
    {"TYPE_INT32", TRITONSERVER_TYPE_INT32, IntegerType::kInt32},
    {"TYPE_INT64", TRITONSERVER_TYPE_INT64, IntegerType::kInt64},
};

template <typename T>
void Narrow(const std::vector<int64_t>& values, void* data) {
  char* bytes = static_cast<char*>(data);
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
  }
}

}  // namespace

TRITONSERVER_DataType IntegerFromConfig(const std::string& name) {
  for (const Integer& known : kIntegers) {
    if (name == known.name) return known.type;
  }
  return TRITONSERVER_TYPE_INVALID;
}

std::optional<IntegerType> IntegerTypeOf(TRITONSERVER_DataType type) {
  for (const Integer& known : kIntegers) {
    if (type == known.type) return known.integer;
  }
  return std::nullopt;
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
