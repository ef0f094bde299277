// SPDX-License-Identifier: Apache-2.0
#include "rows/call_key.h"

namespace ct2triton {

bool SameOptions(const CallKey& a, const CallKey& b) {
  return a.options == b.options || *a.options == *b.options;
}

bool MayShareCall(const CallKey& a, const CallKey& b) {
  return !a.alone && !b.alone && a.list == b.list && a.source_tokens == b.source_tokens &&
         a.limit_tokens == b.limit_tokens && a.forced_tokens == b.forced_tokens &&
         SameOptions(a, b);
}

}  // namespace ct2triton
