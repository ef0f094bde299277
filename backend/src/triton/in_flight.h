// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace ct2triton {

// Counts the requests of one instance that are not yet released.
class InFlight {
 public:
  void Add() noexcept;
  void Done() noexcept;
  void WaitUntilNone();

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  size_t count_ = 0;
};

}  // namespace ct2triton
