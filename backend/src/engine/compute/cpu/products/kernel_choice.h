// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/compute/cpu/products/kernel.h"

namespace ct2triton::products {

// The kernels for such weights that this processor supports within MostInstructions(), fastest
// first; always includes the plain one. All three functions throw what MostInstructions() throws.
std::vector<const Kernel*> KernelsFor(WeightType weights);

// The usable kernel called `name`. Throws Error(kInvalidArgument).
const Kernel& KernelNamed(const std::string& name, WeightType weights);

// The fastest usable kernel.
const Kernel& DefaultKernel(WeightType weights);

}  // namespace ct2triton::products
