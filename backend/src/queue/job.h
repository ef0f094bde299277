// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "rows/checked_row.h"
#include "rows/row_listener.h"

namespace ct2triton {

// A request's row: told of under `position`, the row's place in that request.
struct Waiter {
  std::shared_ptr<RowListener> listener;
  size_t position = 0;
};

// Holds a counter one higher for as long as it lives.
class Counted {
 public:
  Counted() = default;
  explicit Counted(std::atomic<size_t>* count) : count_(count) { ++*count_; }
  Counted(Counted&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  Counted& operator=(Counted&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }
  ~Counted() {
    if (count_ != nullptr) --*count_;
  }

 private:
  std::atomic<size_t>* count_ = nullptr;
};

// A row to run, with all who wait for it: several where equal rows met. Whoever has been answered
// is taken out.
struct Job {
  CheckedRow row;
  std::vector<Waiter> waiters;
  size_t hash = 0;
  Counted running;  // among the rows that are run; set while it is
};

}  // namespace ct2triton
