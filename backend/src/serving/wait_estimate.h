// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ct2triton {

// Estimates a row's wait from the rate at which rows were finished while others waited.
class WaitEstimate {
 public:
  // Call when a row queued at `queued_ns` has been finished. `waiting`: rows that no worker has
  // taken.
  void Count(size_t waiting, uint64_t queued_ns) noexcept;
  // For a row with `waiting` rows before it; 0: not enough data.
  uint64_t Of_ns(size_t waiting) const noexcept;

 private:
  mutable std::mutex mutex_;
  uint64_t last_ns_ = 0;  // when a row was last finished while others waited; 0: none waited since
  double rows_ = 0;       // finished in busy_ns_; older rows count less
  double busy_ns_ = 0;
};

}  // namespace ct2triton
