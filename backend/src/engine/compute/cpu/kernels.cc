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

// Those that this processor runs, the fastest last.
std::vector<Entry> Usable() {
  std::vector<Entry> usable = {{Instructions::kPlain, &kPlainKernels}};
#if defined(__x86_64__)
  for (const Entry& entry :
       {Entry{Instructions::kAvx2, &kAvx2Kernels}, Entry{Instructions::kAvx512, &kAvx512Kernels}}) {
    if (ProcessorRuns(entry.needs)) usable.push_back(entry);
  }
#endif
  return usable;
}

}  // namespace

const Kernels& KernelsNamed(const std::string& name) {
  for (const auto& [needs, kernels] : Usable()) {
    if (name == kernels->name) return *kernels;
  }
  throw Error(ErrorCode::kInvalidArgument, "no kernels \"" + name + "\" on this processor");
}

std::vector<std::string> KernelNames() {
  std::vector<std::string> names;
  for (const auto& [needs, kernels] : Usable()) names.emplace_back(kernels->name);
  return names;
}

const Kernels& ChooseKernels() {
  const Instructions most = MostInstructions();
  const Kernels* chosen = &kPlainKernels;
  for (const auto& [needs, kernels] : Usable()) {
    if (needs <= most) chosen = kernels;
  }
  return *chosen;
}

}  // namespace ct2triton
