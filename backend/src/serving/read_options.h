// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "config/model_config.h"
#include "config/request_options.h"
#include "triton/request.h"

namespace ct2triton {

// Outputs that belong to an option: a request that names the output sets the option.
struct WantedOutputs {
  bool scores = false;
  bool alignments = false;
};

// The decoding options of a request; none: the model's defaults. Its other parameters go into
// `of_request`. Throws Error(kInvalidArgument).
std::optional<DecodingOptions> ReadOptions(const RequestHandle& request,
                                           const WantedOutputs& wanted, const ModelConfig& config,
                                           RequestOptions* of_request);

}  // namespace ct2triton
