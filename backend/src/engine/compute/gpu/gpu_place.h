// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "engine/compute/gpu/gpu.h"
#include "engine/device.h"

namespace ct2triton::gpu {

// Where the decode loops of a device run on our GPU kernels; none: not there. On a GPU they do,
// with the images beside this library. Where the environment variable CT2_TRITON_GPU is "emulated",
// they run on the emulation, whatever the device: libct2triton_emulated_gpu.so, as the system finds
// it. Throws Error(kInvalidArgument) where the variable has another value.
std::optional<GpuPlace> PlaceOf(const Device& device);

}  // namespace ct2triton::gpu
