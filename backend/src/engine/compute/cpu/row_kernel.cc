// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/row_kernel.h"

#include "engine/compute/cpu/processor.h"

namespace ct2triton {
namespace {

constexpr KernelEntry<RowKernel> kFastestFirst[] = {
#if defined(__x86_64__)
    {Instructions::kAvx512, &kAvx512RowKernel},
    {Instructions::kAvx2, &kAvx2RowKernel},
#endif
    {Instructions::kPlain, &kPlainRowKernel},
};

}  // namespace

const RowKernel& RowKernelNamed(const std::string& name) {
  return KernelNamed(UsableKernels(kFastestFirst), name);
}

std::vector<std::string> RowKernelNames() {
  std::vector<std::string> names;
  for (const RowKernel* kernel : UsableKernels(kFastestFirst)) names.emplace_back(kernel->name);
  return names;
}

const RowKernel& FastestRowKernel() { return *UsableKernels(kFastestFirst).front(); }

}  // namespace ct2triton
