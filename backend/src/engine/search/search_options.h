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
  // Throws Error(kInvalidArgument) for options that do not fit the vocabulary: unknown tokens, IDs
  // out of range, more candidates than tokens. The options must have passed ValidateCombination.
  // `map`: of `weights`, used if the options request it; null: none.
  SearchOptions(const DecodingOptions& options, const Weights& weights,
                const VocabularyMap* map = nullptr);

  const DecodingOptions& options() const { return options_; }

  const Ids& ends() const { return ends_; }                           // the end tokens
  const std::vector<Ids>& suppressed() const { return suppressed_; }  // sequences of tokens

  // The candidates; null: the whole vocabulary. Set if requested and if they include the end
  // tokens. Lives as long as the weights.
  const VocabularyMap* map() const { return map_; }
  // Whether they are those of vmap.txt, which CTranslate2 reads.
  bool UsesLibraryMap() const { return map_ != nullptr && map_->list_number() == 0; }

  // Copies of a row that the search keeps at the same time: beams, alternatives, samples.
  int64_t Copies() const;
  // Tokens that the search of a row with this length limit keeps in memory at most: for each, a key
  // and a value per layer, or its attention to the source.
  int64_t Tokens(int64_t limit_tokens) const;

  // Whether CTranslate2 runs a beam search: for several beams, or a bias towards the prefix.
  bool BeamSearches() const { return options_.beam_size > 1 || Biased(); }
  // Whether the prefix is a bias instead of forced.
  bool Biased() const { return options_.prefix_bias_beta > 0; }
  // Whether CTranslate2's step callback can end single rows: greedy searches and sampling with one
  // hypothesis.
  bool EndsRowsAlone() const;
  // Whether CTranslate2's step callback reports all parts of the answer. It does not report
  // attention, which alignments and the coverage penalty need, nor candidates that differ from call
  // to call.
  bool ReportsRows() const {
    return EndsRowsAlone() && !Aligns() && options_.coverage_penalty == 0 && !candidates_vary_;
  }
  // Whether a row may run beyond its limit and be checked afterwards: a beam search that ends when
  // it has finished beam_size x patience hypotheses. See CallEngine::Run.
  bool MayOverrun() const;
  // Whether a row's answer depends on its padding, so that only rows of equal source length may
  // share a call: CTranslate2's coverage penalty counts padding as source not covered.
  bool PaddingMatters() const { return options_.coverage_penalty != 0; }
  // Whether a row without forced tokens gets another answer in a call with rows that have some:
  // CTranslate2 then drops its second-best end tokens at the first step.
  bool ForcedTokensMatter() const {
    return BeamSearches() && options_.prefix_bias_beta == 0 && options_.min_decoding_length == 0;
  }
  // Whether the answer needs the alignment of its tokens.
  bool Aligns() const { return options_.replace_unknowns || options_.return_alignments; }
  // Whether a decode loop aligns the tokens, which verdicts use if it costs no call.
  bool LoopAligns() const { return Aligns() || Judges(options_); }
  // Whether the answer needs attention, which each finished hypothesis then keeps.
  bool ReadsAttention() const {
    return BeamSearches() && (options_.coverage_penalty != 0 || Aligns());
  }
  // Whether a call returns answers without end tokens; see CallOptions.
  bool CallTakesEndsOff() const { return options_.replace_unknowns && !options_.return_end_token; }
  // Whether rows would get each other's attention on a CPU, so that they must run alone there: at
  // the first step it is repeated for the beams, but its gather indices are not (CTranslate2 4.8.5,
  // src/decoding.cc). One beam needs no repeating.
  bool MixesAttention() const { return options_.beam_size > 1 && ReadsAttention(); }
  // Whether tokens are drawn (sampling).
  bool Draws() const;
  // False for draws without a seed: equal rows then have different answers.
  bool Repeatable() const { return !Draws() || Seeded(); }
  // Whether draws depend on a seed.
  bool Seeded() const { return Draws() && options_.sampling_seed >= 0; }
  // The options of which a call of CTranslate2 has only one value, tokens as IDs; others have their
  // defaults. Rows of searches in which these are equal may share a call.
  const std::shared_ptr<const DecodingOptions>& call_options() const { return call_options_; }

  bool IsEnd(int64_t id) const;
  // Whether the first ID of a row's prefix starts the decoder, and is not returned.
  bool NeedsPrefix() const { return needs_prefix_; }

 private:
  DecodingOptions CallOptions() const;

  DecodingOptions options_;  // use_vmap: whether map_ is set
  const VocabularyMap* map_ = nullptr;
  std::shared_ptr<const DecodingOptions> call_options_;
  bool candidates_vary_ = false;
  bool needs_prefix_ = false;
  std::vector<Ids> suppressed_;
  Ids ends_;
  Ids known_ends_;  // looked up by name too, because a name may occur twice
};

// Throws Error(kInvalidArgument) for draws that CTranslate2 cannot make on the model's device.
void RequireDrawsOfCalls(const DecodingOptions& options, const Weights& weights);

}  // namespace ct2triton
