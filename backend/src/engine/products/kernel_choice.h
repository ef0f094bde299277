// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/products/kernel.h"

namespace ct2triton::products {

// The kernels that this processor runs, the fastest first; the plain one is always among them.
std::vector<const Kernel*> UsableKernels();

// The one of them called `name`. Throws Error(kInvalidArgument).
const Kernel& KernelNamed(const std::string& name);

// The fastest one within MostInstructions(); throws what that throws.
const Kernel& DefaultKernel();

}  // namespace ct2triton::products
