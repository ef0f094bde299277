// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace ct2triton {

// A token named by its vocabulary id or by its vocabulary string.
using Token = std::variant<std::int64_t, std::string>;
using TokenSequence = std::vector<Token>;

// How rows are decoded: plain values, CTranslate2's names and defaults, equal when every value is
// equal (rows with equal options share a call). Ranges and documentation: the table in
// parameter_table.cc; refused combinations: validate.h; checks of the vocabulary: the engine.
struct DecodingOptions {
  std::int64_t beam_size = 2;             // hypotheses kept per row and step; 1 = greedy search
  float patience = 1;                     // factor: ends at beam_size * patience hypotheses
  float length_penalty = 1;               // exponent of the length that divides a score
  float coverage_penalty = 0;             // weight; beam search only
  float repetition_penalty = 1;           // factor on tokens already generated; above 1 penalises
  std::int64_t no_repeat_ngram_size = 0;  // tokens; 0 = off
  bool disable_unk = false;               // never generate the unknown token
  std::vector<TokenSequence> suppress_sequences;  // never generated
  TokenSequence end_token;                        // any of them ends a row; empty = the model's own
  float prefix_bias_beta = 0;                // [0, 1): 0 forces the prefix, above biases towards it
  float draft_bias = 0;                      // [0, 1): probability that goes to a row's draft
  bool return_end_token = false;             // keep the end token in the output
  std::int64_t max_input_length = 1024;      // tokens of a source row; 0 = only the model's limit
  bool truncate_input = false;               // cut a longer row instead of refusing it
  std::int64_t max_decoding_length = 256;    // tokens, the target prefix counted
  double max_decoding_length_multiple = 0;   // of the row's own source length; replaces
                                             // max_decoding_length; 0 = off
  std::int64_t min_decoding_length = 1;      // tokens
  std::int64_t sampling_topk = 1;            // candidates; 1 = no sampling, 0 = whole vocabulary
  float sampling_topp = 1;                   // cumulative probability kept, (0, 1]
  float sampling_temperature = 1;            // divides the logits; 0 = no sampling
  std::int64_t sampling_seed = -1;           // seed of sampling in decode loops; -1 = none
  bool use_vmap = false;                     // use the model's vocabulary map, if it has one
  std::int64_t num_hypotheses = 1;           // hypotheses returned per row
  bool return_scores = false;                // compute the scores
  bool return_alignments = false;            // find the source token of each output token
  bool return_alternatives = false;          // hypotheses differ at the first free position
  float min_alternative_expansion_prob = 0;  // probability; must be 0 with return_alternatives
  bool quality = false;                      // judge each translation; computes its score
  std::string on_doubt = "none";             // action for flagged translations: none, flag, retry
  bool replace_unknowns = false;             // unknown -> the source token most attended to
};

bool operator==(const DecodingOptions& a, const DecodingOptions& b);
inline bool operator!=(const DecodingOptions& a, const DecodingOptions& b) { return !(a == b); }

// Whether translations are judged.
inline bool Judges(const DecodingOptions& options) {
  return options.quality || options.on_doubt != "none";
}

}  // namespace ct2triton
