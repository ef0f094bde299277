// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace ct2triton {

// A number that many threads change. Threads can wait until it falls.
class Count {
 public:
  size_t value() const noexcept { return value_; }
  void Add(size_t more) noexcept { value_ += more; }
  void Remove(size_t fewer) noexcept;

  // Waits until the number is below `most`, or Wake was called after wakes() returned `seen`. False
  // if the time is up first.
  bool WaitBelow(size_t most, uint64_t seen, std::chrono::milliseconds longest);
  uint64_t wakes() const noexcept { return wakes_; }
  void Wake() noexcept;

 private:
  std::atomic<size_t> value_{0};
  std::atomic<size_t> waiting_{0};  // waiting threads; at 0, Remove takes no lock
  std::atomic<uint64_t> wakes_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

using Counter = std::shared_ptr<Count>;

// Raises a counter by `by` for its lifetime.
class Counted {
 public:
  Counted() = default;
  explicit Counted(Counter count, size_t by = 1) : count_(std::move(count)), by_(by) {
    count_->Add(by_);
  }
  Counted(Counted&& other) noexcept : count_(std::move(other.count_)), by_(other.by_) {}
  Counted& operator=(Counted&& other) noexcept {
    std::swap(count_, other.count_);
    std::swap(by_, other.by_);
    return *this;
  }
  ~Counted() {
    if (count_) count_->Remove(by_);
  }

 private:
  Counter count_;
  size_t by_ = 0;
};

}  // namespace ct2triton
