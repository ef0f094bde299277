// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "engine/device.h"

namespace ct2triton {

// The settings of CTranslate2 that belong to a thread, for as long as the thread works with it.
// Made and destroyed on that thread. On a CPU it opens no library: SetThreads takes effect once the
// library is there, so it comes before each piece of work.
class ThreadScope {
 public:
  // `threads`: how many CTranslate2 may use for one operation. Throws where there is no library for
  // a GPU.
  ThreadScope(const Device& device, size_t threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

  void SetThreads(size_t threads) noexcept;
  // Lets the asynchronous GPU allocator give memory back while nothing waits.
  void Idle() const noexcept;

 private:
  const Device device_;
  size_t threads_ = 0;  // last set in the library; 0: none yet
};

// Runs `work` in a scope of its own. On a GPU that is a thread of its own, so that no CUDA context
// stays with the caller's; on a CPU it is the caller's: a thread for each load would take a heap of
// its own from glibc, which keeps the freed memory at its top. Throws what `work` throws.
void RunInThreadScope(const Device& device, size_t threads, const std::function<void()>& work);

}  // namespace ct2triton
