// SPDX-License-Identifier: Apache-2.0
#include "engine/device.h"

#include <exception>

#include "ctranslate2_api.h"
#include "error.h"

namespace ct2triton {

std::string Device::Name() const {
  return kind == Kind::kCpu ? "CPU" : "GPU " + std::to_string(index);
}

int GpuCount() {
  try {
    return ctranslate2::get_device_count(ctranslate2::Device::CUDA);
  } catch (const std::exception&) {
    return 0;  // a driver that does not answer is no driver to us
  }
}

void RequireDevice(const Device& device) {
  if (device.kind == Device::Kind::kCpu) return;
  const int count = GpuCount();
  if (device.index < count) return;
  const std::string found =
      count == 0 ? "CTranslate2 finds no GPU on this machine"
                 : "CTranslate2 finds " + std::to_string(count) + " GPU(s), numbered from 0";
  throw Error(ErrorCode::kInvalidArgument, "instance_group asks for " + device.Name() + ", but " +
                                               found +
                                               "; write kind: KIND_CPU (and a compute_type that a "
                                               "CPU has), or name a GPU that is there");
}

}  // namespace ct2triton
