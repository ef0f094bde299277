// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/compute/token_choice.h"
#include "engine/model/weights.h"
#include "engine/search/search_options.h"

namespace ct2triton {

// The rules for choosing a token, made from a search's options. They follow CTranslate2
// (src/decoding_utils.cc), so that an answer equals CTranslate2's for the row alone: - Penalty,
// n-grams and suppressed sequences see forced tokens, the end token among them too, but not the
// token that starts the decoder. - The penalty acts once per distinct token. - The order is:
// minimum length, penalty, n-grams, single tokens, sequences.
class SearchRules {
 public:
  SearchRules(const SearchOptions& search, const Weights& weights);

  int32_t Output(int64_t id) const;  // -1: no output stands for this id
  int64_t Id(int32_t output) const;
  bool IsEnd(int32_t output) const;
  size_t min_length() const { return min_length_; }  // in tokens, forced ones counted
  std::shared_ptr<const SearchRules> WithMinLength(size_t tokens) const;
  // What the score of a finished sequence becomes.
  float Normalized(float score, size_t length) const;

  // Of the best token after `before`, which must outlive them.
  OutputRules For(const Outputs& before) const;
  // The outputs that must not follow `before`, ascending, each once.
  std::vector<int64_t> Disabled(const Outputs& before) const;

 private:
  void AddRepeatedNgrams(const Outputs& before, std::vector<int64_t>* disabled) const;

  const VocabularyMap* map_;  // null: the whole vocabulary
  Outputs ends_;
  size_t min_length_;  // tokens, forced ones counted
  float repetition_penalty_;
  size_t no_repeat_ngram_size_;     // 0: off
  Outputs disabled_;                // never chosen
  std::vector<Outputs> sequences_;  // of which the last is not chosen after the others
  bool scored_;                     // scores are asked for, or put draws in order
  float length_penalty_;
};

// The rules of the search options that were used last with each vocabulary map: rows that follow
// each other mostly share them.
class SearchRulesCache {
 public:
  explicit SearchRulesCache(const Weights& weights) : weights_(weights) {}
  std::shared_ptr<const SearchRules> Get(const std::shared_ptr<const SearchOptions>& search);

 private:
  struct Used {
    std::shared_ptr<const SearchOptions> search;
    std::shared_ptr<const SearchRules> rules;
  };

  const Weights& weights_;
  std::map<const VocabularyMap*, Used> last_;
};

}  // namespace ct2triton
