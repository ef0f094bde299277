// SPDX-License-Identifier: Apache-2.0
#include "engine/search/search_options.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {
namespace {

[[noreturn]] void Refuse(const std::string& parameter, const std::string& what) {
  ThrowInvalid("parameter " + parameter + ": " + what);
}

int64_t Resolve(const Token& token, const std::string& parameter, const Vocabulary& vocabulary) {
  if (const auto* id = std::get_if<int64_t>(&token)) {
    const auto size = static_cast<int64_t>(vocabulary.size());
    if (*id < 0 || *id >= size) {
      Refuse(parameter, "token id " + std::to_string(*id) +
                            " is not in the target vocabulary, ids 0 to " +
                            std::to_string(size - 1));
    }
    return *id;
  }
  const auto& text = std::get<std::string>(token);
  if (!vocabulary.contains(text)) {
    Refuse(parameter, "token " + Quote(text) + " is not in the target vocabulary");
  }
  return vocabulary.to_id(text);
}

Ids Resolve(const TokenSequence& tokens, const std::string& parameter,
            const Vocabulary& vocabulary) {
  Ids ids;
  for (const Token& token : tokens) ids.push_back(Resolve(token, parameter, vocabulary));
  return ids;
}

Ids ResolveEnds(const DecodingOptions& options, const Weights& weights) {
  if (options.end_token.empty()) return {weights.end_id()};
  return Resolve(options.end_token, "end_token", weights.target());
}

std::string CandidatesText(const VocabularyMap* map) {
  if (map == nullptr) return " tokens of the target vocabulary";
  if (map->list_number() == 0) return " that vmap.txt has for every source (use_vmap is on)";
  return " that " + std::string(kShortlistFile) + " has for " + map->language() +
         " (use_vmap is on)";
}

// CTranslate2 picks this many candidates per row, unchecked.
void RequireCandidates(const std::string& parameter, int64_t value, int64_t per_value,
                       const VocabularyMap* map, const Weights& weights) {
  const auto candidates =
      map != nullptr ? map->size() : static_cast<int64_t>(weights.target().size());
  if (value <= candidates / per_value) return;
  Refuse(parameter, "value " + std::to_string(value) + " needs more candidates than the " +
                        std::to_string(candidates) + CandidatesText(map) + "; at most " +
                        std::to_string(candidates / per_value));
}

// CTranslate2 drops tokens that are not candidates, so a suppressed sequence would become shorter
// and suppress more than requested. With fixed candidates such a sequence cannot be generated.
bool IsNeeded(const Ids& sequence, const VocabularyMap* map) {
  if (map == nullptr || sequence.size() == 1) return true;
  if (!map->fixed()) {
    Refuse("suppress_sequences",
           "sequences of several tokens cannot be combined with use_vmap where vmap.txt has lines "
           "for n-grams");
  }
  const auto& known = map->numbered();
  return std::all_of(sequence.begin(), sequence.end(), [&](int64_t id) {
    return std::binary_search(known.begin(), known.end(), id);
  });
}

}  // namespace

SearchOptions::SearchOptions(const DecodingOptions& options, const Weights& weights,
                             const VocabularyMap* map)
    : options_(options), needs_prefix_(weights.NeedsPrefix()) {
  const auto& vocabulary = weights.target();
  ends_ = ResolveEnds(options, weights);
  for (const int64_t id : ends_) {
    known_ends_.push_back(id);
    known_ends_.push_back(vocabulary.by_name(id));
  }
  // A row could not end at a token that is not a candidate.
  if (!options.use_vmap || (map != nullptr && !map->HasAll(ends_))) map = nullptr;
  map_ = map;
  options_.use_vmap = map != nullptr;
  candidates_vary_ = map != nullptr && !map->fixed();
  if (options.beam_size > 1) RequireCandidates("beam_size", options.beam_size, 2, map, weights);
  if (options.return_alternatives) {
    RequireCandidates("num_hypotheses", options.num_hypotheses, 2, map, weights);
  }
  RequireCandidates("sampling_topk", options.sampling_topk, 1, map, weights);
  for (const auto& sequence : options.suppress_sequences) {
    Ids ids = Resolve(sequence, "suppress_sequences", vocabulary);
    if (IsNeeded(ids, map)) suppressed_.push_back(std::move(ids));
  }
  call_options_ = std::make_shared<const DecodingOptions>(CallOptions());
}

// On a GPU, CTranslate2 keeps the best `sampling_topk` candidates in 48 KiB of shared memory, at 8
// bytes each: its kernel for 6,144 does not start, and the call fails with an unrelated message.
// Its nucleus sampling sorts 8,192 classes, and refuses more at each call.
void RequireDrawsOfCalls(const DecodingOptions& options, const Weights& weights) {
  constexpr int64_t kMostBest = 4096;
  constexpr int64_t kMostSorted = 8192;
  if (weights.device().kind != Device::Kind::kGpu) return;
  const auto vocabulary = static_cast<int64_t>(weights.target().size());
  const bool takes_all = options.sampling_topk == 0 || options.sampling_topk == vocabulary;
  if (!takes_all && options.sampling_topk > kMostBest) {
    Refuse("sampling_topk", "the value " + std::to_string(options.sampling_topk) +
                                " is not allowed on a GPU; give a number from 1 to " +
                                std::to_string(kMostBest) + ", or 0 for the whole vocabulary");
  }
  if (options.sampling_topp < 1 && takes_all && vocabulary > kMostSorted) {
    Refuse("sampling_topp", "below 1 it can choose among at most " + std::to_string(kMostSorted) +
                                " candidates on a GPU, and the vocabulary has " +
                                std::to_string(vocabulary) + "; set sampling_topk to 1 to " +
                                std::to_string(kMostBest));
  }
}

DecodingOptions SearchOptions::CallOptions() const {
  const DecodingOptions defaults;
  DecodingOptions call = options_;
  // Rows have their own limits, and sources were cut before.
  call.max_decoding_length = defaults.max_decoding_length;
  call.max_decoding_length_multiple = defaults.max_decoding_length_multiple;
  call.max_input_length = defaults.max_input_length;
  call.truncate_input = defaults.truncate_input;
  call.end_token.assign(ends_.begin(), ends_.end());
  call.suppress_sequences.clear();
  for (const Ids& sequence : suppressed_) {
    call.suppress_sequences.emplace_back(sequence.begin(), sequence.end());
  }
  if (!options_.replace_unknowns) call.return_end_token = defaults.return_end_token;  // removed
  if (!options_.return_alternatives) {
    call.min_alternative_expansion_prob = defaults.min_alternative_expansion_prob;
  }
  call.quality = defaults.quality;
  call.on_doubt = defaults.on_doubt;
  call.sampling_seed = defaults.sampling_seed;  // calls have no seed
  call.draft_bias = defaults.draft_bias;        // nor a draft bias
  if (!Draws()) {
    call.sampling_topk = 1;
    call.sampling_topp = defaults.sampling_topp;
    call.sampling_temperature = defaults.sampling_temperature;
  }
  if (!BeamSearches()) call.patience = defaults.patience;
  // It only affects the score, which we compute.
  if (ReportsRows()) call.length_penalty = defaults.length_penalty;
  return call;
}

int64_t SearchOptions::Copies() const {
  if (options_.return_alternatives) return options_.num_hypotheses * options_.beam_size;
  return options_.beam_size > 1 ? options_.beam_size : options_.num_hypotheses;
}

int64_t SearchOptions::Tokens(int64_t limit_tokens) const {
  int64_t kept = Copies();
  // Each finished hypothesis keeps its attention until the search ends.
  if (ReadsAttention()) {
    const double finished =
        std::ceil(static_cast<double>(options_.patience) * static_cast<double>(options_.beam_size));
    kept = std::max(kept, static_cast<int64_t>(finished));
  }
  return kept * limit_tokens;
}

bool SearchOptions::EndsRowsAlone() const {
  return options_.beam_size == 1 && options_.num_hypotheses == 1 &&
         options_.prefix_bias_beta == 0 && !options_.return_alternatives;
}

bool SearchOptions::MayOverrun() const {
  const bool ends_early = options_.length_penalty == 0 && options_.coverage_penalty == 0;
  return BeamSearches() && !Draws() && !ends_early && !options_.return_alternatives &&
         !options_.replace_unknowns;
}

bool SearchOptions::Draws() const {
  return options_.sampling_topk != 1 && options_.sampling_temperature != 0;
}

bool SearchOptions::IsEnd(int64_t id) const {
  return std::find(known_ends_.begin(), known_ends_.end(), id) != known_ends_.end();
}

}  // namespace ct2triton
