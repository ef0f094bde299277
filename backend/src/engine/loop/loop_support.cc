// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/loop_support.h"

namespace ct2triton {

std::optional<std::string> WhyNotLoop(const Search& search, const Weights& weights) {
  const DecodingOptions& options = search.options();
  if (options.beam_size != 1) return "beam_size is not 1";
  if (options.num_hypotheses != 1) return "num_hypotheses is not 1";
  if (!search.Deterministic()) return "it samples";
  if (options.return_alternatives) return "return_alternatives is on";
  if (options.prefix_bias_beta != 0) return "prefix_bias_beta is not 0";
  if (options.coverage_penalty != 0) return "coverage_penalty is not 0";
  if (options.replace_unknowns) return "replace_unknowns is on";
  if (search.UsesMap() && !weights.vocabulary_map()->fixed()) {
    return "vmap.txt has lines for n-grams";
  }
  return std::nullopt;
}

}  // namespace ct2triton
