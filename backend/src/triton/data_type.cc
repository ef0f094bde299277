// SPDX-License-Identifier: Apache-2.0
#include "triton/data_type.h"

#include <cstring>
#include <limits>

#include "error.h"

namespace ct2triton {
namespace {

template <typename T>
struct TypeTag {
  using Type = T;
};

// Calls `visit` with the C++ type of an integer type; false if it is none.
template <typename Visit>
bool VisitInteger(TRITONSERVER_DataType type, Visit&& visit) {
  switch (type) {
    case TRITONSERVER_TYPE_UINT8:
      visit(TypeTag<uint8_t>());
      return true;
    case TRITONSERVER_TYPE_UINT16:
      visit(TypeTag<uint16_t>());
      return true;
    case TRITONSERVER_TYPE_UINT32:
      visit(TypeTag<uint32_t>());
      return true;
    case TRITONSERVER_TYPE_UINT64:
      visit(TypeTag<uint64_t>());
      return true;
    case TRITONSERVER_TYPE_INT8:
      visit(TypeTag<int8_t>());
      return true;
    case TRITONSERVER_TYPE_INT16:
      visit(TypeTag<int16_t>());
      return true;
    case TRITONSERVER_TYPE_INT32:
      visit(TypeTag<int32_t>());
      return true;
    case TRITONSERVER_TYPE_INT64:
      visit(TypeTag<int64_t>());
      return true;
    default:
      return false;
  }
}

template <typename T>
int64_t Widen(T value) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const bool too_large = value > T(0) && static_cast<uint64_t>(value) > uint64_t(kLargest);
  return too_large ? kLargest : static_cast<int64_t>(value);
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

size_t IntegerByteSize(TRITONSERVER_DataType type) {
  size_t byte_size = 0;
  VisitInteger(type, [&](auto tag) { byte_size = sizeof(typename decltype(tag)::Type); });
  return byte_size;
}

std::vector<int64_t> WidenIntegers(const void* data, size_t count, TRITONSERVER_DataType type) {
  std::vector<int64_t> values(count);
  VisitInteger(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const char* bytes = static_cast<const char*>(data);
    for (size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
      values[i] = Widen(value);
    }
  });
  return values;
}

void NarrowIntegers(const std::vector<int64_t>& values, TRITONSERVER_DataType type, void* data) {
  const bool integer = VisitInteger(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    char* bytes = static_cast<char*>(data);
    for (size_t i = 0; i < values.size(); ++i) {
      const T value = static_cast<T>(values[i]);
      std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
    }
  });
  if (!integer) throw Error(ErrorCode::kInternal, "an output of ids is not of an integer type");
}

}  // namespace ct2triton
