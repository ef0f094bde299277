// SPDX-License-Identifier: Apache-2.0
//
// What a request says, by role: its tensors and its decoding options.
#pragma once

#include <optional>

#include "config/model_config.h"
#include "rows/row_tensors.h"
#include "triton/request.h"

namespace ct2triton {

// Reads the inputs by name, whatever integer type they have and however many buffers they lie in.
// Shapes are those that the client sent: [b, n] where the model's max_batch_size is above 0.
// Throws Error(kInvalidArgument): a missing or surplus input, a type that is no integer, memory
// that the CPU cannot read.
RequestTensors ReadTensors(const Request& request, const ModelConfig& config);

// The options of a request that sets any; nothing where the model's defaults hold unchanged.
// A request that asks for SCORES has them computed. Throws Error(kInvalidArgument).
std::optional<DecodingOptions> ReadOptions(const Request& request, bool scores_wanted,
                                           const ModelConfig& config);

}  // namespace ct2triton
