// SPDX-License-Identifier: Apache-2.0
#include "engine/thread_scope.h"

#include <future>

#include "ctranslate2_api.h"
#include "engine/model/weights.h"

namespace ct2triton {

ThreadScope::ThreadScope(const Device& device, size_t threads)
    : device_(device), threads_(threads) {
  if (device.kind == Device::Kind::kGpu) {
    ctranslate2::set_device_index(LibraryDevice(device), device.index);
  }
  ctranslate2::set_num_threads(threads);
}

ThreadScope::~ThreadScope() {
  if (ctranslate2::destroy_context != nullptr) ctranslate2::destroy_context(LibraryDevice(device_));
}

void ThreadScope::SetThreads(size_t threads) noexcept {
  if (threads == threads_) return;
  ctranslate2::set_num_threads(threads);
  threads_ = threads;
}

void ThreadScope::Idle() const noexcept {
  if (device_.kind != Device::Kind::kGpu) return;
  try {
    ctranslate2::synchronize_stream(LibraryDevice(device_));
  } catch (...) {  // the next call on this device fails with the reason
  }
}

void RunInThreadScope(const Device& device, size_t threads, const std::function<void()>& work) {
  const auto run = [&] {
    const ThreadScope scope(device, threads);
    work();
  };
  if (device.kind == Device::Kind::kCpu) return run();
  std::async(std::launch::async, run).get();
}

}  // namespace ct2triton
