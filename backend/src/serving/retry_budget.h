// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace ct2triton {

// How many rows of a model may be decoded again: one for every 20 rows whose answers are judged for
// that, and 16 more at once. So a model that fails on all rows does not decode them all twice.
class RetryBudget {
 public:
  // A row was judged.
  void Earn() noexcept;
  // Whether one more row may be decoded again.
  bool Take() noexcept;

 private:
  static constexpr int kRowsForOne = 20;
  static constexpr int kMost = 16 * kRowsForOne;

  std::atomic<int> rows_{kMost};  // judged, and not spent
};

}  // namespace ct2triton
