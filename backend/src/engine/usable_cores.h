// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace ct2triton {

// The cores that this process may use.
struct Cores {
  size_t threads = 1;   // processors, including hyperthreads
  size_t physical = 1;  // physical cores
};

// Computed from the affinity mask and the CPU quotas of the process's control group and of the
// groups above it, of version 2 or 1. `root`: of the file system; tests imitate one.
Cores CoresOfProcess(const std::string& root = "");

inline size_t UsableCores() { return CoresOfProcess().threads; }

}  // namespace ct2triton
