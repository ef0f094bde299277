// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/model/model_file.h"

namespace ct2triton {

// The weight type on a CPU for the parameter compute_type and the type in the file. As CTranslate2
// resolves it: kInt8, kFloat32, or kInt16, which only CTranslate2 itself can compute with. Throws
// Error(kInvalidArgument) for an unknown name or a type that CPUs do not support.
ElementType ResolveComputeType(const std::string& compute_type, ElementType stored);

}  // namespace ct2triton
