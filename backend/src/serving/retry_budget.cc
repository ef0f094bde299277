// SPDX-License-Identifier: Apache-2.0
#include "serving/retry_budget.h"

namespace ct2triton {

void RetryBudget::Earn() noexcept {
  int rows = rows_;
  while (rows < kMost && !rows_.compare_exchange_weak(rows, rows + 1)) {
  }
}

bool RetryBudget::Take() noexcept {
  int rows = rows_;
  while (rows >= kRowsForOne) {
    if (rows_.compare_exchange_weak(rows, rows - kRowsForOne)) return true;
  }
  return false;
}

}  // namespace ct2triton
