// SPDX-License-Identifier: Apache-2.0
#include "queue/count.h"

namespace ct2triton {

void Count::Remove(size_t fewer) noexcept {
  value_ -= fewer;
  if (waiting_ == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  changed_.notify_all();
}

bool Count::WaitBelow(size_t most, uint64_t seen, std::chrono::milliseconds longest) {
  ++waiting_;
  std::unique_lock<std::mutex> lock(mutex_);
  const bool in_time =
      changed_.wait_for(lock, longest, [&] { return value_ < most || wakes_ != seen; });
  --waiting_;
  return in_time;
}

void Count::Wake() noexcept {
  ++wakes_;
  if (waiting_ == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  changed_.notify_all();
}

}  // namespace ct2triton
