// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace ct2triton {

// Limits the rows of a model that are decoded again: one for every 20 judged rows, plus a burst of
// 16. So a model that fails on all rows does not decode them all twice.
class RetryBudget {
 public:
  // Call for each judged row.
  void Earn() noexcept;
  // Whether one more row may be decoded again.
  bool Take() noexcept;

 private:
  static constexpr int kRowsForOne = 20;
  static constexpr int kMost = 16 * kRowsForOne;

  std::atomic<int> rows_{kMost};  // retries left, in judged rows
};

}  // namespace ct2triton
