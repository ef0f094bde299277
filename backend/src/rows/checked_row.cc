// SPDX-License-Identifier: Apache-2.0
#include "rows/checked_row.h"

namespace ct2triton {

bool EqualRows(const CheckedRow& a, const CheckedRow& b) {
  return a.limit_tokens == b.limit_tokens && a.cut == b.cut && a.mapped == b.mapped &&
         a.source == b.source && a.prefix == b.prefix && a.draft == b.draft &&
         (a.options == b.options || *a.options == *b.options);
}

}  // namespace ct2triton
