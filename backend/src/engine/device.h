// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace ct2triton {

struct Device {
  enum class Kind { kCpu, kGpu };
  Kind kind = Kind::kCpu;
  int index = 0;

  bool operator==(const Device& other) const { return kind == other.kind && index == other.index; }
  std::string Name() const;  // "CPU", "GPU 0"
};

// Number of GPUs CTranslate2 can use on this machine; 0 without a driver.
int GpuCount();

// Throws Error(kInvalidArgument), saying what to change, if CTranslate2 cannot use `device` here.
void RequireDevice(const Device& device);

// Cores this process may use: its affinity mask, and the CPU quota of its control group, of version
// 2 or 1. `control_group`: the folder that shows it.
size_t UsableCores(const std::string& control_group = "/sys/fs/cgroup");

}  // namespace ct2triton
