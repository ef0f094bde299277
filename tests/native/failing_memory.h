// SPDX-License-Identifier: Apache-2.0
//
// Memory that runs out on purpose: a program with failing_memory.cc in it can say which allocations
// of a thread fail.
#pragma once

#include <cstddef>

namespace failing_memory {

// The allocation of this number fails on the calling thread, counted from 1, and `lasting - 1`
// more after it.
void FailFrom(size_t allocation, size_t lasting = 1) noexcept;

constexpr size_t kForEver = static_cast<size_t>(-1);

// Memory is back on the calling thread. True if it did not run out: so many allocations never came.
bool Restore() noexcept;

// Allocations that have failed, on all threads.
size_t Failed() noexcept;

// Keeps the process on one core, so that one thread decodes.
void UseOneCore();

}  // namespace failing_memory
