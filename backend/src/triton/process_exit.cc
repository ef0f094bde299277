// SPDX-License-Identifier: Apache-2.0
#include "triton/process_exit.h"

#include <cxxabi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "steady_clock.h"

namespace ct2triton {
namespace {

constexpr uint64_t kPeriod_ns = 100'000'000;

// None of these variables has a destructor, so they stay valid during exit().
std::mutex mutex;
size_t users = 0;
std::atomic<uint64_t> renewed_ns{0};
thread_local bool removes = false;

// glibc also passes the exit status to handlers of this kind.
void EndProcess(void* /*argument*/, int status) {
  if (removes) return;
  std::fflush(stdout);
  std::quick_exit(status);
}

// Registered as the destructor of an object in a shared library with the handle `&users`, because a
// handler registered with std::atexit cannot be removed.
bool Add() noexcept {
  const auto untyped = reinterpret_cast<void (*)()>(EndProcess);
  renewed_ns = SteadyNow_ns();
  return abi::__cxa_atexit(reinterpret_cast<void (*)(void*)>(untyped), nullptr, &users) == 0;
}

void Remove() noexcept {
  removes = true;
  abi::__cxa_finalize(&users);  // calls it, too
  removes = false;
}

}  // namespace

ExitsAtOnce::ExitsAtOnce() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (users == 0 && !Add()) throw std::bad_alloc();
  ++users;
}

ExitsAtOnce::~ExitsAtOnce() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (--users == 0) Remove();
}

void RenewExitHandler() noexcept {
  if (SteadyNow_ns() - renewed_ns < kPeriod_ns) return;
  const std::lock_guard<std::mutex> lock(mutex);
  if (users == 0) return;
  Remove();  // first, so that its place in the list is used again
  Add();
}

}  // namespace ct2triton
