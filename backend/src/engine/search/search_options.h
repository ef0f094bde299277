// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/decoding_options.h"
#include "engine/model/weights.h"

namespace ct2triton {

// Decoding options resolved against one model's vocabulary, ready for any number of calls.
class SearchOptions {
 public:
  // Throws Error(kInvalidArgument) for what this vocabulary cannot serve: unknown tokens, ids out
  // of range, more candidates than tokens. The options have passed ValidateCombination.
  // `map`: one of those of `weights`, used where the options ask for it; null: none.
  SearchOptions(const DecodingOptions& options, const Weights& weights,
                const VocabularyMap* map = nullptr);

  const DecodingOptions& options() const { return options_; }

  const Ids& ends() const { return ends_; }                           // the end tokens
  const std::vector<Ids>& suppressed() const { return suppressed_; }  // sequences of tokens

  // The candidates, if not the whole vocabulary: they were asked for, and the end tokens are among
  // them. Lives as long as the weights.
  const VocabularyMap* map() const { return map_; }
  // They are those of vmap.txt, which CTranslate2 reads.
  bool UsesLibraryMap() const { return map_ != nullptr && map_->list_number() == 0; }

  // Copies of a row that the search keeps at the same time: beams, alternatives, samples.
  int64_t Copies() const;
  // Tokens that the search of a row with this length limit may come to keep in memory: for each, a
  // key and a value per layer, or what the attention to the source was.
  int64_t Tokens(int64_t limit_tokens) const;

  // CTranslate2's beam search runs: for beams, and for a bias towards the prefix at one beam.
  bool BeamSearches() const { return options_.beam_size > 1 || Biased(); }
  // A prefix is not forced.
  bool Biased() const { return options_.prefix_bias_beta > 0; }
  // True where a row can be ended alone, by CTranslate2's step callback: greedy searches and
  // sampling with one hypothesis.
  bool EndsRowsAlone() const;
  // True where CTranslate2's step callback reports all that the answer is made of. It does not
  // report attention, which aligns tokens and makes a coverage penalty, nor candidates
  // that differ from call to call.
  bool ReportsRows() const {
    return EndsRowsAlone() && !Aligns() && options_.coverage_penalty == 0 && !candidates_vary_;
  }
  // True where a row may run beyond its limit and be judged afterwards: a beam search that ends
  // when it has finished beam_size x patience hypotheses. See CallEngine::Run.
  bool MayOverrun() const;
  // True where a row's answer depends on the padding after it, so that only rows of equal source
  // length may share a call: CTranslate2's coverage penalty counts padding as source not covered.
  bool PaddingMatters() const { return options_.coverage_penalty != 0; }
  // True where a row without forced tokens is answered otherwise beside rows that have some:
  // CTranslate2 then drops its second-best end tokens at the first step.
  bool ForcedTokensMatter() const {
    return BeamSearches() && options_.prefix_bias_beta == 0 && options_.min_decoding_length == 0;
  }
  // Where each token comes from is part of the answer, or decides about it.
  bool Aligns() const { return options_.replace_unknowns || options_.return_alignments; }
  // Attention is part of the answer, and each finished hypothesis keeps its own.
  bool ReadsAttention() const {
    return BeamSearches() && (options_.coverage_penalty != 0 || Aligns());
  }
  // A call gives its answers without their end tokens; see CallOptions.
  bool CallTakesEndsOff() const { return options_.replace_unknowns && !options_.return_end_token; }
  // True where rows get each other's attention on a CPU, and so have to run alone there: at the
  // first step it is repeated for the beams, but its gather indices are not (CTranslate2 4.8.5,
  // src/decoding.cc). One beam needs no repeating.
  bool MixesAttention() const { return options_.beam_size > 1 && ReadsAttention(); }
  // Tokens are drawn, not chosen.
  bool Draws() const;
  // False for draws without a seed: equal rows then have different answers.
  bool Repeatable() const { return !Draws() || Seeded(); }
  // What is drawn depends on a seed.
  bool Seeded() const { return Draws() && options_.sampling_seed >= 0; }
  // The options that a call of CTranslate2 has one value of, tokens as ids; the others stand at
  // their defaults. Rows of searches in which these are equal may share a call.
  const std::shared_ptr<const DecodingOptions>& call_options() const { return call_options_; }

  bool IsEnd(int64_t id) const;
  // The first id of a row's prefix starts the decoder, and is not echoed.
  bool NeedsPrefix() const { return needs_prefix_; }

 private:
  DecodingOptions CallOptions() const;

  DecodingOptions options_;  // use_vmap: whether there is a map
  const VocabularyMap* map_ = nullptr;
  std::shared_ptr<const DecodingOptions> call_options_;
  bool candidates_vary_ = false;
  bool needs_prefix_ = false;
  std::vector<Ids> suppressed_;
  Ids ends_;
  Ids known_ends_;  // as looked up by name too: a name may stand twice in a vocabulary
};

}  // namespace ct2triton
