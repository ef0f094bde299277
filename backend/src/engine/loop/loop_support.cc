// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/loop_support.h"

#include <string>

#include "engine/search/finish.h"

namespace ct2triton {

namespace {

// Of a search of alternatives: all of its beams run at every step, and nothing can part them.
constexpr int64_t kMostAlternativeBeams = 128;

// What is left of the options of a search without those that the loop obeys, or that change
// nothing in it. An option that is new to the loop stays.
DecodingOptions WithoutKnown(DecodingOptions options) {
  const DecodingOptions defaults;
  options.beam_size = defaults.beam_size;
  options.num_hypotheses = defaults.num_hypotheses;
  options.patience = defaults.patience;
  options.length_penalty = defaults.length_penalty;
  options.prefix_bias_beta = defaults.prefix_bias_beta;
  options.draft_bias = defaults.draft_bias;
  options.repetition_penalty = defaults.repetition_penalty;
  options.no_repeat_ngram_size = defaults.no_repeat_ngram_size;
  options.disable_unk = defaults.disable_unk;
  options.suppress_sequences = defaults.suppress_sequences;
  options.end_token = defaults.end_token;
  options.return_end_token = defaults.return_end_token;
  options.max_input_length = defaults.max_input_length;
  options.truncate_input = defaults.truncate_input;
  options.max_decoding_length = defaults.max_decoding_length;
  options.max_decoding_length_multiple = defaults.max_decoding_length_multiple;
  options.min_decoding_length = defaults.min_decoding_length;
  options.sampling_topk = defaults.sampling_topk;
  options.sampling_topp = defaults.sampling_topp;
  options.sampling_temperature = defaults.sampling_temperature;
  options.sampling_seed = defaults.sampling_seed;
  options.use_vmap = defaults.use_vmap;
  options.return_scores = defaults.return_scores;
  options.return_alignments = defaults.return_alignments;
  options.replace_unknowns = defaults.replace_unknowns;
  options.return_alternatives = defaults.return_alternatives;
  options.min_alternative_expansion_prob = defaults.min_alternative_expansion_prob;
  return options;
}

}  // namespace

std::optional<std::string> WhyNotLoop(const SearchOptions& search) {
  const DecodingOptions& options = search.options();
  if (options.coverage_penalty != 0) return "coverage_penalty is not 0";
  if (options.return_alternatives && search.Copies() > kMostAlternativeBeams) {
    return "return_alternatives has " + std::to_string(search.Copies()) +
           " beams in all (beam_size x num_hypotheses), more than " +
           std::to_string(kMostAlternativeBeams);
  }
  if (search.map() != nullptr && !search.map()->fixed()) {
    return "vmap.txt has lines for n-grams";
  }
  if (WithoutKnown(options) != DecodingOptions()) return "it has an option that the loop lacks";
  return std::nullopt;
}

// A row whose prefix reaches its limit never runs in the loop, so nothing says where its tokens
// look. (With a seed it stays there, since calls take none.)
std::optional<std::string> WhyNotLoop(const CheckedRow& row, const Weights& weights) {
  const SearchOptions& search = *row.search;
  if (auto reason = WhyNotLoop(search)) return reason;
  const size_t first = weights.NeedsPrefix() ? 1 : 0;
  const auto limit = static_cast<size_t>(row.limit_tokens);
  if (!search.options().replace_unknowns || search.Biased() || search.Seeded() ||
      row.prefix.size() < first + limit) {
    return std::nullopt;
  }
  const auto& target = weights.target();
  for (size_t i = first; i < first + limit; ++i) {
    const auto& token = target.to_token(static_cast<size_t>(row.prefix[i]));
    if (IsUnknown(static_cast<int64_t>(target.to_id(token)), weights)) {
      return "replace_unknowns is on, and its prefix has an unknown token and reaches its limit";
    }
  }
  return std::nullopt;
}

}  // namespace ct2triton
