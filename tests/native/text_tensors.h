// SPDX-License-Identifier: Apache-2.0
//
// Tensors of strings, as they are on Triton's wire: each with its length before it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "triton_stand_in.h"

namespace stand_in {

inline std::string StringBytes(const std::vector<std::string>& values) {
  std::string bytes;
  for (const std::string& value : values) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value.size() >> shift);
    bytes += value;
  }
  return bytes;
}

inline Tensor Strings(const std::string& name, const std::vector<std::string>& values) {
  return {
      name, TRITONSERVER_TYPE_BYTES, {static_cast<int64_t>(values.size())}, StringBytes(values)};
}

inline std::vector<std::string> ReadStrings(const Tensor& tensor) {
  std::vector<std::string> values;
  for (size_t at = 0; at < tensor.bytes.size();) {
    size_t length = 0;
    for (size_t i = 4; i-- > 0;) {
      length = length << 8 | static_cast<unsigned char>(tensor.bytes[at + i]);
    }
    values.push_back(tensor.bytes.substr(at + 4, length));
    at += 4 + length;
  }
  return values;
}

}  // namespace stand_in
