// SPDX-License-Identifier: Apache-2.0
#include "rows/id_view.h"

#include <cstring>
#include <limits>

namespace ct2triton {
namespace {

template <typename T>
int64_t Read(const char* data, size_t position) {
  T value;
  std::memcpy(&value, data + position * sizeof(T), sizeof(T));
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const bool too_large = value > T(0) && static_cast<uint64_t>(value) > uint64_t(kLargest);
  return too_large ? kLargest : static_cast<int64_t>(value);
}

}  // namespace

size_t ByteSize(IntegerType type) {
  switch (type) {
    case IntegerType::kUint8:
    case IntegerType::kInt8:
      return 1;
    case IntegerType::kUint16:
    case IntegerType::kInt16:
      return 2;
    case IntegerType::kUint32:
    case IntegerType::kInt32:
      return 4;
    case IntegerType::kUint64:
    case IntegerType::kInt64:
      break;
  }
  return 8;
}

int64_t IdView::operator[](size_t position) const {
  switch (type_) {
    case IntegerType::kUint8:
      return Read<uint8_t>(data_, position);
    case IntegerType::kUint16:
      return Read<uint16_t>(data_, position);
    case IntegerType::kUint32:
      return Read<uint32_t>(data_, position);
    case IntegerType::kUint64:
      return Read<uint64_t>(data_, position);
    case IntegerType::kInt8:
      return Read<int8_t>(data_, position);
    case IntegerType::kInt16:
      return Read<int16_t>(data_, position);
    case IntegerType::kInt32:
      return Read<int32_t>(data_, position);
    case IntegerType::kInt64:
      break;
  }
  return Read<int64_t>(data_, position);
}

IdView IdView::Slice(size_t begin, size_t count) const {
  return IdView(data_ + begin * ByteSize(type_), count, type_);
}

Ids IdView::Copy() const {
  Ids ids;
  ids.reserve(size_);
  for (size_t i = 0; i < size_; ++i) ids.push_back((*this)[i]);
  return ids;
}

}  // namespace ct2triton
