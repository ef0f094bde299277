// SPDX-License-Identifier: Apache-2.0
#include "serving/read_options.h"

#include "config/parameters.h"

namespace ct2triton {

std::optional<DecodingOptions> ReadOptions(const RequestHandle& request, bool scores_wanted,
                                           const ModelConfig& config, RequestOptions* of_request) {
  const auto parameters = request.Parameters();
  const bool turn_scores_on = scores_wanted && !config.decoding.return_scores;
  if (parameters.empty() && !turn_scores_on) return std::nullopt;
  DecodingOptions options = config.decoding;
  for (const auto& [name, value] : parameters) {
    SetRequestParameter(name, value, config.engine, &options, of_request);
  }
  if (scores_wanted) options.return_scores = true;
  return options;
}

}  // namespace ct2triton
