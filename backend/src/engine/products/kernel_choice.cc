// SPDX-License-Identifier: Apache-2.0
#include "engine/products/kernel_choice.h"

#include <cpuid.h>

#include <cstdlib>

#include "error.h"

namespace ct2triton::products {
namespace {

constexpr const char* kVariable = "CT2_TRITON_KERNELS";
constexpr const char* kNames[] = {"avx512vnni", "avxvnni", "avx2", "plain"};

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

// Not every compiler knows its name: bit 4 of EAX of leaf 7, subleaf 1.
bool HasAvxVnni() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return HasAvx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1U << 4)) != 0;
}

bool HasAvx512Vnni() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

std::string Listed(const std::vector<const Kernel*>& kernels) {
  std::string list;
  for (const Kernel* kernel : kernels)
    list += (list.empty() ? "" : ", ") + std::string(kernel->name);
  return list;
}

}  // namespace

std::vector<const Kernel*> UsableKernels() {
  std::vector<const Kernel*> kernels;
  if (HasAvx512Vnni()) kernels.push_back(&kAvx512VnniKernel);
  if (HasAvxVnni()) kernels.push_back(&kAvxVnniKernel);
  if (HasAvx2()) kernels.push_back(&kAvx2Kernel);
  kernels.push_back(&kPlainKernel);
  return kernels;
}

const Kernel& KernelNamed(const std::string& name) {
  const auto usable = UsableKernels();
  for (const Kernel* kernel : usable) {
    if (name == kernel->name) return *kernel;
  }
  for (const char* known : kNames) {
    if (name == known) {
      throw Error(ErrorCode::kUnsupported, "kernels \"" + name +
                                               "\": this processor does not have the instructions; "
                                               "it has those for " +
                                               Listed(usable));
    }
  }
  throw Error(ErrorCode::kInvalidArgument,
              "kernels \"" + name + "\": no such kernels; this processor has " + Listed(usable));
}

const Kernel& DefaultKernel() {
  const char* forced = std::getenv(kVariable);
  if (forced == nullptr || *forced == '\0') return *UsableKernels().front();
  try {
    return KernelNamed(forced);
  } catch (const Error& error) {
    throw Error(error.code(),
                std::string("environment variable ") + kVariable + ": " + error.what());
  }
}

}  // namespace ct2triton::products
