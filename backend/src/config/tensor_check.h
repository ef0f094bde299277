// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/model_config.h"
#include "config/tensor_table.h"

namespace ct2triton {

// Checks the tensors that a config declares in one direction, `kind` being "input" or "output":
// names, types, dims, which are missing, repeated or optional. Throws Error(kInvalidArgument).
void CheckTensors(const std::string& kind, const std::vector<TensorRule>& rules,
                  const std::vector<TensorSpec>& tensors);

}  // namespace ct2triton
