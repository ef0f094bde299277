// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/kernels.h"

#include <cstdlib>

#include "error.h"

namespace ct2triton {
namespace {

// What this processor runs, the fastest last.
std::vector<const Kernels*> Usable() {
  std::vector<const Kernels*> usable = {&kPlainKernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    usable.push_back(&kAvx2Kernels);
  }
  if (__builtin_cpu_supports("avx512f")) usable.push_back(&kAvx512Kernels);
#endif
  return usable;
}

}  // namespace

const Kernels* FindKernels(const std::string& name) {
  for (const Kernels* kernels : Usable()) {
    if (name == kernels->name) return kernels;
  }
  return nullptr;
}

std::vector<std::string> KernelNames() {
  std::vector<std::string> names;
  for (const Kernels* kernels : Usable()) names.emplace_back(kernels->name);
  return names;
}

const Kernels& ChooseKernels() {
  const char* wanted = std::getenv("CT2_TRITON_KERNELS");
  if (wanted == nullptr || *wanted == '\0') return *Usable().back();
  if (const Kernels* kernels = FindKernels(wanted)) return *kernels;
  std::string names;
  for (const auto& name : KernelNames()) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorCode::kInvalidArgument, "environment variable CT2_TRITON_KERNELS is \"" +
                                               std::string(wanted) +
                                               "\"; this processor runs: " + names);
}

}  // namespace ct2triton
