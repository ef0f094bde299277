// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/loop/kernels.h"
#include "engine/loop/layers.h"
#include "engine/search.h"
#include "engine/weights.h"
#include "rows/checked_row.h"

namespace ct2triton {

// A search's options as the greedy choice needs them, its tokens numbered as the outputs of the
// projection are: by vocabulary id, or by place among the candidates of the vocabulary map.
struct GreedyRules {
  GreedyRules(const Search& search, const Weights& weights);

  int32_t Output(int64_t id) const;  // -1: no output stands for this id
  int64_t Id(int32_t output) const;

  const VocabularyMap* map;  // null: the whole vocabulary
  std::vector<int32_t> ends;
  size_t min_length;  // tokens, forced ones counted
  float repetition_penalty;
  size_t no_repeat_ngram_size;                  // 0: off
  std::vector<int32_t> disabled;                // never chosen
  std::vector<std::vector<int32_t>> sequences;  // of which the last is not chosen after the others
  bool scored;                                  // scores are asked for
  float length_penalty;
};

// The next token of a row.
struct Choice {
  int32_t output = 0;
  float log_probability = 0;  // 0 unless scores are asked for
};

// The state of one row's greedy search. It follows CTranslate2's (src/decoding.cc and
// src/decoding_utils.cc), so that an answer is the one that CTranslate2 gives for the row alone:
// - A forced token adds nothing to the score, but counts in the length that divides the score and
//   in the minimum length. So does the end token.
// - Penalty, n-grams and suppressed sequences see forced tokens, the end token among them too, but
//   not the token that starts the decoder.
// - The order is: minimum length, penalty, n-grams, single tokens, sequences, log-softmax.
// - With scores the choice is by log-probability, else by logits; the first maximum wins.
class GreedySearch {
 public:
  // `forced`: at most `limit` outputs of the projection, which the row begins with.
  GreedySearch(std::shared_ptr<const GreedyRules> rules, const std::vector<int32_t>& forced,
               size_t limit);

  // Changes the logits: [outputs].
  Choice Choose(float* logits, size_t outputs, const Kernels& kernels,
                const LogSoftmax& log_softmax) const;
  // Whether the next choice takes more than the logits and Disabled().
  bool ChangesLogits() const { return rules_->repetition_penalty != 1; }
  // The outputs that must not be chosen next, ascending, each once.
  std::vector<int64_t> Disabled() const;
  // Whether the row ends with this choice, and the score that it has then.
  bool EndsWith(const Choice& choice) const;
  float ScoreWith(const Choice& choice) const;
  // Makes the choice the row's next token.
  void Accept(const Choice& choice) noexcept;

  const GreedyRules& rules() const { return *rules_; }

 private:
  void ApplyOptions(float* logits) const;
  void Penalize(float* logits) const;
  void AddEarlyEnds(std::vector<int64_t>* disabled) const;
  void AddOthers(std::vector<int64_t>* disabled) const;
  void AddRepeatedNgrams(std::vector<int64_t>* disabled) const;

  std::shared_ptr<const GreedyRules> rules_;
  size_t limit_;
  std::vector<int32_t> outputs_;  // forced and chosen; has room for all that may come
  float score_ = 0;               // sum of the log-probabilities
};

// The rules of the search that was used last: rows that follow each other mostly share it.
class GreedyRulesCache {
 public:
  explicit GreedyRulesCache(const Weights& weights) : weights_(weights) {}
  std::shared_ptr<const GreedyRules> Get(const std::shared_ptr<const Search>& search);

 private:
  const Weights& weights_;
  std::shared_ptr<const Search> search_;
  std::shared_ptr<const GreedyRules> rules_;
};

}  // namespace ct2triton
