// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "rows/row.h"

namespace ct2triton {

enum class IntegerType { kUint8, kUint16, kUint32, kUint64, kInt8, kInt16, kInt32, kInt64 };

size_t ByteSize(IntegerType type);  // of one element

// A view of IDs as received: integers of any type, at any address. They are read one by one, so
// that a refused row is never copied.
class IdView {
 public:
  IdView() = default;
  IdView(const void* data, size_t size, IntegerType type)
      : data_(static_cast<const char*>(data)), size_(size), type_(type) {}
  // `ids` must outlive the view.
  IdView(const Ids& ids) : IdView(ids.data(), ids.size(), IntegerType::kInt64) {}
  IdView(Ids&& ids) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // A value beyond 63 bits reads as the largest one.
  int64_t operator[](size_t position) const;

  IdView Slice(size_t begin, size_t count) const;
  Ids Copy() const;

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
  IntegerType type_ = IntegerType::kInt64;
};

// One sentence as the client sent it: not yet checked against a model.
struct RowInput {
  IdView source;
  IdView prefix;      // empty: none
  IdView draft = {};  // expected after the prefix; empty: none
};

}  // namespace ct2triton
