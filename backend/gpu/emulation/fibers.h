// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "device.h"

namespace emulation {

struct Kernel {
  size_t args_bytes = 0;
  unsigned threads = 0;  // per block
  Run run = nullptr;
};

// Null if there is no kernel of this name.
const Kernel* Find(const std::string& name);

// Runs all blocks of a kernel.
void Launch(const Kernel& kernel, const void* args, Dim grid, Dim block, size_t shared_bytes);

// The order in which fibers run.
void Seed(unsigned seed);

}  // namespace emulation
