// SPDX-License-Identifier: Apache-2.0
#include "engine/thread_scope.h"

#include <future>

#include "engine/calls/call_library.h"

namespace ct2triton {

ThreadScope::ThreadScope(const Device& device, size_t threads) : device_(device) {
  if (device.kind == Device::Kind::kGpu) CallLibrary::Get().UseDevice(device);
  SetThreads(threads);
}

ThreadScope::~ThreadScope() {
  if (device_.kind == Device::Kind::kGpu) CallLibrary::Get().EndThread(device_);
}

void ThreadScope::SetThreads(size_t threads) noexcept {
  const CallLibrary* library = CallLibrary::Opened();
  if (library == nullptr || threads == threads_) return;
  library->SetThreads(threads);
  threads_ = threads;
}

void ThreadScope::Idle() const noexcept {
  if (device_.kind != Device::Kind::kGpu) return;
  try {
    CallLibrary::Get().Synchronize(device_);
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
