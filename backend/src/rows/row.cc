// SPDX-License-Identifier: Apache-2.0
#include "rows/row.h"

#include <functional>
#include <string_view>

namespace ct2triton {

size_t HashIds(const Ids& ids) noexcept {
  const std::string_view bytes(reinterpret_cast<const char*>(ids.data()),
                               ids.size() * sizeof(ids[0]));
  return std::hash<std::string_view>()(bytes);
}

const char* FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kEmpty:
      return "empty";
    case FinishReason::kCut:
      return "cut";
  }
  return "";
}

}  // namespace ct2triton
