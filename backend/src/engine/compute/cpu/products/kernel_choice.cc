// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/products/kernel_choice.h"

#include "engine/compute/cpu/processor.h"
#include "error.h"

namespace ct2triton::products {
namespace {

struct Entry {
  Instructions needs;
  const Kernel* kernel;
};

// Fastest first among kernels for the same type of weights.
constexpr Entry kFastestFirst[] = {
#if defined(__x86_64__)
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

std::vector<const Kernel*> UsableKernels(WeightType weights) {
  const Instructions most = MostInstructions();
  std::vector<const Kernel*> kernels;
  for (const auto& [needs, kernel] : kFastestFirst) {
    if (kernel->weights != weights || needs > most) continue;
    if (ProcessorRuns(needs)) kernels.push_back(kernel);
  }
  return kernels;
}

const Kernel& KernelNamed(const std::string& name, WeightType weights) {
  std::string names;
  for (const Kernel* kernel : UsableKernels(weights)) {
    if (name == kernel->name) return *kernel;
    names += (names.empty() ? "" : ", ") + std::string(kernel->name);
  }
  throw Error(ErrorCode::kInvalidArgument,
              "no kernels \"" + name + "\"; this processor runs " + names);
}

const Kernel& DefaultKernel(WeightType weights) { return *UsableKernels(weights).front(); }

}  // namespace ct2triton::products
