// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/products/kernel_choice.h"

#include <algorithm>

#include "engine/compute/cpu/processor.h"

namespace ct2triton::products {
namespace {

// Among kernels for the same type of weights.
constexpr KernelEntry<Kernel> kFastestFirst[] = {
#if defined(__x86_64__)
    {Instructions::kAmx, &kAmxKernel},
    {Instructions::kAvx512Vnni, &kAvx512VnniKernel},
    {Instructions::kAvxVnni, &kAvxVnniKernel},
    {Instructions::kAvx2, &kAvx2Kernel},
    {Instructions::kAvx512, &kAvx512FloatKernel},
    {Instructions::kAvx2, &kAvx2FloatKernel},
#endif
    {Instructions::kPlain, &kPlainKernel},
    {Instructions::kPlain, &kPlainFloatKernel},
};

}  // namespace

std::vector<const Kernel*> KernelsFor(WeightType weights) {
  auto kernels = UsableKernels(kFastestFirst);
  const auto other = [=](const Kernel* kernel) { return kernel->weights != weights; };
  kernels.erase(std::remove_if(kernels.begin(), kernels.end(), other), kernels.end());
  return kernels;
}

const Kernel& KernelNamed(const std::string& name, WeightType weights) {
  return ct2triton::KernelNamed(KernelsFor(weights), name);
}

const Kernel& DefaultKernel(WeightType weights) { return *KernelsFor(weights).front(); }

}  // namespace ct2triton::products
