// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/kernels.h"

#include "engine/compute/cpu/processor.h"
#include "error.h"

namespace ct2triton {
namespace {

struct Entry {
  Instructions needs;
  const Kernels* kernels;
};

// Kernels that this processor supports within MostInstructions(), fastest last.
std::vector<const Kernels*> Usable() {
  std::vector<const Kernels*> usable = {&kPlainKernels};
#if defined(__x86_64__)
  const Instructions most = MostInstructions();
  for (const auto& [needs, kernels] :
       {Entry{Instructions::kAvx2, &kAvx2Kernels}, Entry{Instructions::kAvx512, &kAvx512Kernels}}) {
    if (needs <= most && ProcessorRuns(needs)) usable.push_back(kernels);
  }
#endif
  return usable;
}

}  // namespace

const Kernels& KernelsNamed(const std::string& name) {
  for (const Kernels* kernels : Usable()) {
    if (name == kernels->name) return *kernels;
  }
  throw Error(ErrorCode::kInvalidArgument, "no kernels \"" + name + "\" on this processor");
}

std::vector<std::string> KernelNames() {
  std::vector<std::string> names;
  for (const Kernels* kernels : Usable()) names.emplace_back(kernels->name);
  return names;
}

const Kernels& ChooseKernels() { return *Usable().back(); }

}  // namespace ct2triton
