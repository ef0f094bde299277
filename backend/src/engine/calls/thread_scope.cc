// SPDX-License-Identifier: Apache-2.0
#include "engine/calls/thread_scope.h"

#include <future>

#include "engine/calls/call_library.h"

namespace ct2triton {

ThreadScope::ThreadScope(const Device& device, size_t threads)
    : device_(device),
      gpu_library_(device.kind == Device::Kind::kGpu ? CallLibrary::Opened() : nullptr) {
  try {
    if (gpu_library_ != nullptr) gpu_library_->UseDevice(device);
  } catch (...) {  // calls on this device fail with the reason; loops do not need the library
    gpu_library_ = nullptr;
  }
  SetThreads(threads);
}

ThreadScope::~ThreadScope() {
  if (gpu_library_ != nullptr) gpu_library_->EndThread(device_);
}

void ThreadScope::SetThreads(size_t threads) noexcept {
  const CallLibrary* library = CallLibrary::Opened();
  if (library == nullptr || threads == threads_) return;
  library->SetThreads(threads);
  threads_ = threads;
}

void ThreadScope::Idle() const noexcept {
  if (gpu_library_ == nullptr) return;
  try {
    gpu_library_->Synchronize(device_);
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
