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

// Number of GPUs CTranslate2 can use on this machine; 0 without a driver.
int GpuCount();

// Throws Error(kInvalidArgument), saying what to change, if CTranslate2 cannot use `device` here.
void RequireDevice(const Device& device);

}  // namespace ct2triton
