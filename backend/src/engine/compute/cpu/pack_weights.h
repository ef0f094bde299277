// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine/compute/cpu/products/packed_linear.h"
#include "engine/model/model_file.h"

namespace ct2triton {

// Packs the layer `scope` of a model (weight, scales, bias), straight from its file: some rows at a
// time, on up to `threads` threads. `type`: kInt8 or kFloat32, which the weights are converted to.
// `pages`: see PageMemory. Throws Error(kUnsupported) for a layer of another form.
std::shared_ptr<const products::PackedLinear> PackWeights(const ModelFile& file,
                                                          const std::string& scope,
                                                          ElementType type,
                                                          products::SharedPages* pages,
                                                          size_t threads);

}  // namespace ct2triton
