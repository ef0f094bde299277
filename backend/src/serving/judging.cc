// SPDX-License-Identifier: Apache-2.0
#include "serving/judging.h"

#include <algorithm>

#include "config/tensor_table.h"

namespace ct2triton {

bool HasMeanScores(const DecodingOptions& options) {
  return options.length_penalty == 1 && options.coverage_penalty == 0 &&
         options.repetition_penalty == 1 && options.prefix_bias_beta == 0 &&
         options.draft_bias == 0;
}

void LeaveOutVerdicts(std::vector<std::string>* outputs) {
  const auto is_verdict = [](const std::string& name) {
    return name == tensor::kQuality || name == tensor::kQualityFlags ||
           name == tensor::kTextQuality || name == tensor::kTextQualityFlags;
  };
  outputs->erase(std::remove_if(outputs->begin(), outputs->end(), is_verdict), outputs->end());
}

}  // namespace ct2triton
