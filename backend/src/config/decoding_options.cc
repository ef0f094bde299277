// SPDX-License-Identifier: Apache-2.0
#include "config/decoding_options.h"

#include <tuple>

namespace ct2triton {
namespace {

// Every field; a field left out here would let rows with unequal options share a call
// (tests/core/test_parameters.py changes each parameter alone and compares).
auto Fields(const DecodingOptions& o) {
  return std::tie(o.beam_size, o.patience, o.length_penalty, o.coverage_penalty,
                  o.repetition_penalty, o.no_repeat_ngram_size, o.disable_unk, o.suppress_sequences,
                  o.end_token, o.prefix_bias_beta, o.return_end_token, o.max_input_length,
                  o.truncate_input, o.max_decoding_length, o.max_decoding_length_multiple,
                  o.min_decoding_length, o.sampling_topk, o.sampling_topp, o.sampling_temperature,
                  o.use_vmap, o.num_hypotheses, o.return_scores, o.return_alternatives,
                  o.min_alternative_expansion_prob, o.replace_unknowns);
}

}  // namespace

bool operator==(const DecodingOptions& a, const DecodingOptions& b) {
  return Fields(a) == Fields(b);
}

}  // namespace ct2triton
