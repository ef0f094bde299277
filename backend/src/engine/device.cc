// SPDX-License-Identifier: Apache-2.0
#include "engine/device.h"

#include "engine/compute/gpu/driver.h"
#include "error.h"

namespace ct2triton {

std::string Device::Name() const {
  return kind == Kind::kCpu ? "CPU" : "GPU " + std::to_string(index);
}

int GpuCount() {
  try {
    const gpu::Driver driver("libcuda.so.1");
    int count = 0;
    return driver.init(0) == 0 && driver.device_count(&count) == 0 ? count : 0;
  } catch (const Error&) {
    return 0;  // the driver is missing or too old
  }
}

void RequireDevice(const Device& device) {
  if (device.kind == Device::Kind::kCpu) return;
  const int count = GpuCount();
  if (device.index < count) return;
  const std::string found =
      count == 0 ? "the CUDA driver finds no GPU on this machine"
                 : "the CUDA driver finds " + std::to_string(count) + " GPU(s), numbered from 0";
  ThrowInvalid("instance_group asks for " + device.Name() + ", but " + found +
               "; write kind: KIND_CPU (and a compute_type that a "
               "CPU has), or name a GPU that is there");
}

}  // namespace ct2triton
