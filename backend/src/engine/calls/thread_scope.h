// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "engine/device.h"

namespace ct2triton {

class CallLibrary;

// CTranslate2's settings of a thread, while the thread works with it. Made and destroyed on that
// thread. It opens no library. SetThreads takes effect only once the library is loaded, so call it
// before each piece of work; on a GPU, the library must be loaded before threads that call it.
class ThreadScope {
 public:
  // `threads`: how many CTranslate2 may use for one operation.
  ThreadScope(const Device& device, size_t threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

  void SetThreads(size_t threads) noexcept;
  // Lets the asynchronous GPU allocator release memory while no work waits.
  void Idle() const noexcept;

 private:
  const Device device_;
  const CallLibrary* gpu_library_;  // null: on a CPU, or without CTranslate2 for this device
  size_t threads_ = 0;              // last set in the library; 0: not set
};

// Runs `work` in a scope of its own. On a GPU it starts a thread, so that the calling thread gets
// no CUDA context. On a CPU it uses the calling thread, because glibc would give each loading
// thread a heap of its own and keep its freed memory. Throws what `work` throws.
void RunInThreadScope(const Device& device, size_t threads, const std::function<void()>& work);

}  // namespace ct2triton
