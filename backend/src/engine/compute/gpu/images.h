// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ct2triton::gpu {

// The image of the kernels for a GPU of a compute capability (80 for 8.0) in the file `packed`,
// which tools/gpu_images.py writes: a cubin of the same major number and no greater minor number;
// if there is none, the PTX, unless it is for later GPUs. Throws Error(kNoKernels) if no image
// fits, or the file is missing, damaged or of other sources.
std::string ImageFor(const std::string& packed, int capability);

}  // namespace ct2triton::gpu
