// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace ct2triton {

// The instruction sets of kernels, least first. A processor may support a later one but not an
// earlier.
enum class Instructions { kPlain, kAvx2, kAvxVnni, kAvx512, kAvx512Vnni };

// "plain", "avx2", "avxvnni", "avx512", "avx512vnni"
const char* InstructionsName(Instructions instructions);

// Whether this processor and its system support them.
bool ProcessorRuns(Instructions instructions);

// The most that kernels may use: everything, or at most what the environment variable
// CT2_TRITON_KERNELS names. Throws Error(kInvalidArgument) for an unknown name, and
// Error(kUnsupported) for instructions that this processor lacks.
Instructions MostInstructions();

}  // namespace ct2triton
