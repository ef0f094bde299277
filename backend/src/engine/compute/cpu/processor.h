// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace ct2triton {

// The instruction sets that kernels are written for, the least first. A processor may lack one that
// is not the last.
enum class Instructions { kPlain, kAvx2, kAvxVnni, kAvx512, kAvx512Vnni };

// "plain", "avx2", "avxvnni", "avx512", "avx512vnni"
const char* InstructionsName(Instructions instructions);

// Whether this processor, and its system, run them.
bool ProcessorRuns(Instructions instructions);

// The most that kernels may use: everything, or no more than what the environment variable
// CT2_TRITON_KERNELS names. Throws Error(kInvalidArgument) for a name that is none of the above,
// and Error(kUnsupported) for instructions that this processor does not have.
Instructions MostInstructions();

}  // namespace ct2triton
