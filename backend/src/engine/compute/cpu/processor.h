// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "error.h"

namespace ct2triton {

// The instruction sets of kernels, least first. A processor may support a later one but not an
// earlier.
enum class Instructions { kPlain, kAvx2, kAvxVnni, kAvx512, kAvx512Vnni, kAmx };

// "plain", "avx2", "avxvnni", "avx512", "avx512vnni", "amx"
const char* InstructionsName(Instructions instructions);

// Whether this processor and its system support them. For AMX, asks the system, which then saves 8
// KiB more of each thread that uses tiles, and demands that stacks for signals have room for them.
bool ProcessorRuns(Instructions instructions);

// The most that kernels may use: everything, or at most what the environment variable
// CT2_TRITON_KERNELS names. Throws Error(kInvalidArgument) for an unknown name, and
// Error(kUnsupported) for instructions that this processor lacks.
Instructions MostInstructions();

// A kernel, which has a name, and what it needs.
template <typename Kernel>
struct KernelEntry {
  Instructions needs;
  const Kernel* kernel;
};

// The kernels of a table that this processor supports within MostInstructions(), in order. Throws
// what MostInstructions() throws.
template <typename Kernel, size_t kCount>
std::vector<const Kernel*> UsableKernels(const KernelEntry<Kernel> (&table)[kCount]) {
  const Instructions most = MostInstructions();
  std::vector<const Kernel*> usable;
  for (const auto& [needs, kernel] : table) {
    if (needs <= most && ProcessorRuns(needs)) usable.push_back(kernel);
  }
  return usable;
}

// Throws Error(kInvalidArgument) if none has this name.
template <typename Kernel>
const Kernel& KernelNamed(const std::vector<const Kernel*>& kernels, const std::string& name) {
  std::string names;
  for (const Kernel* kernel : kernels) {
    if (name == kernel->name) return *kernel;
    names += (names.empty() ? "" : ", ") + std::string(kernel->name);
  }
  ThrowInvalid("no kernel \"" + name + "\"; this processor runs " + names);
}

}  // namespace ct2triton
