// SPDX-License-Identifier: Apache-2.0
#include "engine/calls/library/call_options.h"

#include <cmath>
#include <string>

#include "engine/calls/library/ct2_model.h"

namespace ct2triton {
namespace {

// CTranslate2 has no list per language, so each token that is not on the list is forbidden. The
// result is the same, but a step is no faster than with the whole vocabulary, or slower.
void ForbidOthers(const VocabularyMap& list, const ctranslate2::Vocabulary& target,
                  ctranslate2::TranslationOptions* options) {
  const auto& allowed = list.numbered();
  auto next = allowed.begin();
  for (size_t id = 0; id < target.size(); ++id) {
    if (next != allowed.end() && static_cast<size_t>(*next) == id) {
      ++next;
      continue;
    }
    const std::string& token = target.to_token(id);
    // Other IDs of the same name cannot be named.
    if (target.to_id(token) == id) options->suppress_sequences.push_back({token});
  }
}

}  // namespace

ctranslate2::TranslationOptions CallOptions(const SearchOptions& search, int64_t limit_tokens,
                                            const ctranslate2::Vocabulary& target, Keep keep) {
  const DecodingOptions& from = search.options();
  ctranslate2::TranslationOptions to;
  to.beam_size = static_cast<size_t>(from.beam_size);
  to.patience = from.patience;
  to.length_penalty = from.length_penalty;
  to.coverage_penalty = from.coverage_penalty;
  to.repetition_penalty = from.repetition_penalty;
  to.no_repeat_ngram_size = static_cast<size_t>(from.no_repeat_ngram_size);
  to.disable_unk = from.disable_unk;
  for (const Ids& sequence : search.suppressed()) {
    to.suppress_sequences.push_back(Ct2Model::ToTokens(sequence, target));
  }
  to.prefix_bias_beta = from.prefix_bias_beta;
  to.end_token = std::vector<size_t>(search.ends().begin(), search.ends().end());
  // The end token tells "stop" from "length", and the engine removes it. But a replaced unknown
  // token may look like one, so then CTranslate2 removes end tokens, before it replaces.
  to.return_end_token = !search.CallTakesEndsOff();
  to.max_input_length = 0;  // rows were checked, or cut, one by one
  to.max_decoding_length = static_cast<size_t>(limit_tokens);
  to.min_decoding_length = static_cast<size_t>(from.min_decoding_length);
  to.sampling_topk = static_cast<size_t>(from.sampling_topk);
  to.sampling_topp = from.sampling_topp;
  to.sampling_temperature = from.sampling_temperature;
  to.use_vmap = search.UsesLibraryMap();
  to.num_hypotheses = static_cast<size_t>(from.num_hypotheses);
  if (keep == Keep::kAllFinished) {
    to.num_hypotheses =
        static_cast<size_t>(std::round(static_cast<float>(from.beam_size) * from.patience));
  }
  to.return_scores = from.return_scores;
  to.return_attention = from.return_alignments;
  to.return_alternatives = from.return_alternatives;
  to.min_alternative_expansion_prob = from.min_alternative_expansion_prob;
  to.replace_unknowns = from.replace_unknowns;
  if (search.map() != nullptr && !search.UsesLibraryMap()) {
    ForbidOthers(*search.map(), target, &to);
  }
  return to;
}

}  // namespace ct2triton
