// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/loop_support.h"

#include <string>
#include <tuple>

#include "engine/search/finish.h"
#include "engine/search/wide_search.h"

namespace ct2triton {

namespace {

// Limit for a search of alternatives, because all of its beams must run at every step.
constexpr int64_t kMostAlternativeBeams = 128;

using D = DecodingOptions;
// The options that the loop supports, or that do not affect it.
constexpr std::tuple kKnown(&D::beam_size, &D::num_hypotheses, &D::patience, &D::length_penalty,
                            &D::prefix_bias_beta, &D::draft_bias, &D::repetition_penalty,
                            &D::no_repeat_ngram_size, &D::disable_unk, &D::suppress_sequences,
                            &D::end_token, &D::return_end_token, &D::max_input_length,
                            &D::truncate_input, &D::max_decoding_length,
                            &D::max_decoding_length_multiple, &D::min_decoding_length,
                            &D::sampling_topk, &D::sampling_topp, &D::sampling_temperature,
                            &D::sampling_seed, &D::use_vmap, &D::return_scores,
                            &D::return_alignments, &D::quality, &D::on_doubt, &D::replace_unknowns,
                            &D::return_alternatives, &D::min_alternative_expansion_prob);

// Resets known options, so that only options unknown to the loop remain set.
DecodingOptions WithoutKnown(DecodingOptions options) {
  const DecodingOptions defaults;
  std::apply([&](auto... known) { ((options.*known = defaults.*known), ...); }, kKnown);
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

// A row whose prefix reaches its limit is never decoded in the loop, so the loop has no alignments
// for it. With a seed it stays in the loop, because calls take no seed.
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
    if (IsUnknown(target.by_name(row.prefix[i]), weights)) {
      return "replace_unknowns is on, and its prefix has an unknown token and reaches its limit";
    }
  }
  return std::nullopt;
}

Ids FirstIds(const CheckedRow& row, const Weights& weights) {
  const auto& vocabulary = weights.target();
  Ids ids;
  if (!weights.NeedsPrefix()) ids.push_back(vocabulary.to_id(*weights.files().decoder_start_token));
  for (const int64_t id : row.prefix) ids.push_back(vocabulary.by_name(id));
  return ids;
}

size_t EncodedTokens(const CheckedRow& row, const Weights& weights) {
  return row.source.size() + static_cast<size_t>(weights.added_source_tokens());
}

size_t CacheTokens(const CheckedRow& row, const Weights& weights) {
  size_t forced = row.prefix.size() - (weights.NeedsPrefix() ? 1 : 0);
  if (row.search->Biased()) forced = 0;
  return SlotsFor(static_cast<size_t>(row.search->Copies()), forced,
                  static_cast<size_t>(row.limit_tokens));
}

}  // namespace ct2triton
