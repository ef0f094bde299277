// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/compute/cpu/products/kernel.h"

namespace ct2triton::products {

// The kernels for such weights that this processor runs within MostInstructions(), the fastest
// first; the plain one is always among them. Throws what MostInstructions() throws, as the others.
std::vector<const Kernel*> UsableKernels(WeightType weights);

// The one of them called `name`. Throws Error(kInvalidArgument).
const Kernel& KernelNamed(const std::string& name, WeightType weights);

// The fastest one.
const Kernel& DefaultKernel(WeightType weights);

}  // namespace ct2triton::products
