// SPDX-License-Identifier: Apache-2.0
#include "rows/checked_row.h"

namespace ct2triton {
namespace {

// Models on the same files may have chosen other heads.
bool SameAlignment(const CheckedRow& a, const CheckedRow& b) {
  if (a.alignment == b.alignment) return true;
  return a.alignment && b.alignment && *a.alignment == *b.alignment;
}

}  // namespace

bool EqualRows(const CheckedRow& a, const CheckedRow& b) {
  return a.limit_tokens == b.limit_tokens && a.cut == b.cut && a.mapped == b.mapped &&
         a.source == b.source && a.prefix == b.prefix && a.draft == b.draft &&
         SameAlignment(a, b) && (a.options == b.options || *a.options == *b.options);
}

}  // namespace ct2triton
