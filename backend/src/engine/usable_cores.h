// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace ct2triton {

// What this process may compute on.
struct Cores {
  size_t threads = 1;   // that run at a time: hyperthreads count
  size_t physical = 1;  // of them, those on a core of their own
};

// By the affinity mask and the CPU quotas of the process's control group and of the groups above
// it, of version 2 or 1. `root`: of the file system that shows them; tests imitate one.
Cores CoresOfProcess(const std::string& root = "");

inline size_t UsableCores() { return CoresOfProcess().threads; }

}  // namespace ct2triton
