// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "engine/compute/gpu/gpu.h"
#include "engine/device.h"

namespace ct2triton::gpu {

// The GPU on which decode loops of a device run our kernels; none: they do not. On a GPU, they use
// the images in this library's folder. If the environment variable CT2_TRITON_GPU is "emulated",
// they use the emulation on every device: libct2triton_emulated_gpu.so, from the system's search
// path. Throws Error(kInvalidArgument) for another value of the variable.
std::optional<GpuPlace> PlaceOf(const Device& device);

}  // namespace ct2triton::gpu
