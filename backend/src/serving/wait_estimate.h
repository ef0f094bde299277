// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ct2triton {

// How long a row of a model waits, by the rate at which rows were finished while others waited.
class WaitEstimate {
 public:
  // A row that came into the queue at `queued_ns` has been finished. `waiting`: those that no
  // worker has taken.
  void Count(size_t waiting, uint64_t queued_ns) noexcept;
  // For a row with `waiting` rows before it; 0 while too little is known.
  uint64_t Of_ns(size_t waiting) const noexcept;

 private:
  mutable std::mutex mutex_;
  uint64_t last_ns_ = 0;  // when a row was finished while others waited; 0: none waited since
  double rows_ = 0;       // finished in busy_ns_; older ones count less
  double busy_ns_ = 0;
};

}  // namespace ct2triton
