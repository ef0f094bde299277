// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/loop_compute.h"

#include "engine/compute/cpu/host_compute.h"
#include "engine/compute/library_gpu/device_compute.h"

namespace ct2triton {

std::unique_ptr<LoopCompute> LoopCompute::New(const DecoderModel& model, LoopCaches* caches) {
  if (model.on_device()) return std::make_unique<DeviceCompute>(model);
  return std::make_unique<HostCompute>(model, caches);
}

}  // namespace ct2triton
