// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/model/model_file.h"

namespace ct2triton {

// What a CPU holds weights in, given the parameter compute_type and their type in the file. As
// CTranslate2 resolves it: kInt8, kFloat32, or kInt16, which only CTranslate2 itself computes with.
// Throws Error(kInvalidArgument) for a name that is not known, or that no CPU computes with.
ElementType ResolveComputeType(const std::string& compute_type, ElementType stored);

}  // namespace ct2triton
