// SPDX-License-Identifier: Apache-2.0
#include "serving/read_options.h"

#include "config/parameters.h"

namespace ct2triton {

std::optional<DecodingOptions> ReadOptions(const RequestHandle& request,
                                           const WantedOutputs& wanted, const ModelConfig& config,
                                           RequestOptions* of_request) {
  const auto parameters = request.Parameters();
  const DecodingOptions& defaults = config.decoding;
  const bool turn_on = (wanted.scores && !defaults.return_scores) ||
                       (wanted.alignments && !defaults.return_alignments);
  if (parameters.empty() && !turn_on) return std::nullopt;
  DecodingOptions options = defaults;
  NamedOnce once;
  for (const auto& [name, value] : parameters) {
    once.Add(name);
    SetRequestParameter(name, value, config.engine, &options, of_request);
  }
  if (wanted.scores || Judges(options)) options.return_scores = true;
  if (wanted.alignments) options.return_alignments = true;
  return options;
}

}  // namespace ct2triton
