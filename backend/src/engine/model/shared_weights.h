// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "engine/model/weights.h"

namespace ct2triton {

// Loads a model directory, or returns the weights in use that were loaded from the same files
// (inode, size, times of change) on this device with this compute type. Throws Error; see
// LoadedModel.
std::shared_ptr<const Weights> SharedWeights(const std::string& directory, const Device& device,
                                             const std::string& compute_type);

}  // namespace ct2triton
