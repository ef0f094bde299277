// SPDX-License-Identifier: Apache-2.0
#include "failing_memory.h"

#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace failing_memory {
namespace {

thread_local size_t until_failure = 0;  // allocations, the one that fails included; 0: none fails
thread_local size_t failures_left = 0;
thread_local bool ran_out = false;
std::atomic<size_t> failed{0};

bool Fails() noexcept {
  if (until_failure == 0) return false;
  if (until_failure > 1) {
    --until_failure;
    return false;
  }
  if (failures_left == 0) return false;
  if (failures_left != kForEver) --failures_left;
  ++failed;
  ran_out = true;
  return true;
}

}  // namespace

void FailFrom(size_t allocation, size_t lasting) noexcept {
  until_failure = allocation;
  failures_left = lasting;
  ran_out = false;
}

bool Restore() noexcept {
  until_failure = failures_left = 0;
  return !ran_out;
}

size_t Failed() noexcept { return failed; }

void UseOneCore() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) std::abort();
  int core = 0;
  while (!CPU_ISSET(core, &mask)) ++core;
  CPU_ZERO(&mask);
  CPU_SET(core, &mask);
  if (sched_setaffinity(0, sizeof(mask), &mask) != 0) std::abort();
}

}  // namespace failing_memory

void* operator new(std::size_t size) {
  if (failing_memory::Fails()) throw std::bad_alloc();
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return failing_memory::Fails() ? nullptr : std::malloc(size);
}
// Inlined, they look to GCC as if the wrong function freed what new gave.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
