// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ct2triton {

struct Device {
  enum class Kind { kCpu, kGpu };
  Kind kind = Kind::kCpu;
  int index = 0;

  bool operator==(const Device& other) const { return kind == other.kind && index == other.index; }
  std::string Name() const;  // "CPU", "GPU 0"
};

// Number of GPUs that the CUDA driver finds on this machine; 0 without a driver of CUDA 12 or
// later.
int GpuCount();

// Throws Error(kInvalidArgument), saying what to change, if there is no such device.
void RequireDevice(const Device& device);

}  // namespace ct2triton
