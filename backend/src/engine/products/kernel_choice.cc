// SPDX-License-Identifier: Apache-2.0
#include "engine/products/kernel_choice.h"

#include "engine/processor.h"
#include "error.h"

namespace ct2triton::products {
namespace {

struct Entry {
  Instructions needs;
  const Kernel* kernel;
};

constexpr Entry kFastestFirst[] = {
#if defined(__x86_64__)
    {Instructions::kAvx512Vnni, &kAvx512VnniKernel},
    {Instructions::kAvxVnni, &kAvxVnniKernel},
    {Instructions::kAvx2, &kAvx2Kernel},
#endif
    {Instructions::kPlain, &kPlainKernel},
};

}  // namespace

std::vector<const Kernel*> UsableKernels() {
  std::vector<const Kernel*> kernels;
  for (const auto& [needs, kernel] : kFastestFirst) {
    if (ProcessorRuns(needs)) kernels.push_back(kernel);
  }
  return kernels;
}

const Kernel& KernelNamed(const std::string& name) {
  std::string names;
  for (const Kernel* kernel : UsableKernels()) {
    if (name == kernel->name) return *kernel;
    names += (names.empty() ? "" : ", ") + std::string(kernel->name);
  }
  throw Error(ErrorCode::kInvalidArgument,
              "no kernels \"" + name + "\"; this processor runs " + names);
}

const Kernel& DefaultKernel() {
  const Instructions most = MostInstructions();
  for (const auto& [needs, kernel] : kFastestFirst) {
    if (needs <= most && ProcessorRuns(needs)) return *kernel;
  }
  return kPlainKernel;
}

}  // namespace ct2triton::products
