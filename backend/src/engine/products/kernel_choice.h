// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/products/kernel.h"

namespace ct2triton::products {

// The kernels that this processor can run, the fastest first; the plain one is always among them.
std::vector<const Kernel*> UsableKernels();

// The kernel called `name`. Throws Error(kInvalidArgument) for a name that is none, and
// Error(kUnsupported) for a kernel that this processor (or this build) does not have.
const Kernel& KernelNamed(const std::string& name);

// The fastest kernel, or the one that the environment variable CT2_TRITON_KERNELS names. Throws as
// KernelNamed does.
const Kernel& DefaultKernel();

}  // namespace ct2triton::products
