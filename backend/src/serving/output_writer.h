// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/model_config.h"
#include "rows/row_tensors.h"
#include "triton/response.h"

namespace ct2triton {

// Adds the wanted outputs to the response, each in the type that the model's config declares.
void WriteOutputs(const AnswerTensors& answer, const std::vector<std::string>& wanted,
                  const ModelConfig& config, Response* response);

}  // namespace ct2triton
