// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/products/kernel_choice.h"

#include "engine/compute/cpu/processor.h"

namespace ct2triton::products {
namespace {

// Fastest first.
constexpr KernelEntry<Kernel> kInt8Kernels[] = {
#if defined(__x86_64__)
    {Instructions::kAmx, &kAmxKernel},         {Instructions::kAvx512Vnni, &kAvx512VnniKernel},
    {Instructions::kAvxVnni, &kAvxVnniKernel}, {Instructions::kAvx2, &kAvx2Kernel},
#endif
    {Instructions::kPlain, &kPlainKernel},
};
constexpr KernelEntry<Kernel> kFloatKernels[] = {
#if defined(__x86_64__)
    {Instructions::kAvx512, &kAvx512FloatKernel},
    {Instructions::kAvx2, &kAvx2FloatKernel},
#endif
    {Instructions::kPlain, &kPlainFloatKernel},
};

}  // namespace

std::vector<const Kernel*> KernelsFor(WeightType weights) {
  return weights == WeightType::kInt8 ? UsableKernels(kInt8Kernels) : UsableKernels(kFloatKernels);
}

const Kernel& KernelNamed(const std::string& name, WeightType weights) {
  return ct2triton::KernelNamed(KernelsFor(weights), name);
}

const Kernel& DefaultKernel(WeightType weights) { return *KernelsFor(weights).front(); }

}  // namespace ct2triton::products
