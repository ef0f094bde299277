// SPDX-License-Identifier: Apache-2.0
#include "rows/row.h"

namespace ct2triton {

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
