// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/compute/sampler.h"
#include "engine/compute/token_choice.h"
#include "engine/search/draft_bias.h"
#include "engine/search/search_rules.h"

namespace ct2triton {

// The state of a greedy search, which may draw its tokens, as CTranslate2's (src/decoding.cc):
// - A forced token adds nothing to the score, but counts in the length that divides the score and
//   in the minimum length. So does the end token.
// - With scores the choice is by log-probability, else by logits; the first maximum wins.
class GreedySearch {
 public:
  // `forced`: first outputs of the row, at most `limit`. `sampler`: draws tokens; none: takes the
  // best. `bias`: towards a draft, for a search that does not draw.
  GreedySearch(std::shared_ptr<const SearchRules> rules, const Outputs& forced, size_t limit,
               const std::optional<Sampler>& sampler = std::nullopt,
               std::shared_ptr<const DraftBias> bias = nullptr);

  // Rules of the next token; valid until the search advances.
  OutputRules Rules() const;
  // Whether the row ends with this choice, and its final score.
  bool EndsWith(const Choice& choice) const;
  float ScoreWith(const Choice& choice) const;
  // Makes the choice the row's next token.
  void Accept(const Choice& choice) noexcept;
  // The search as it is after these outputs, for one choice; it has no score yet.
  GreedySearch After(const Outputs& outputs) const;
  // Takes the score from the search that made the choice which led here.
  void TakeScore(const GreedySearch& before, const Choice& choice) noexcept;

  const SearchRules& rules() const { return *rules_; }
  const Outputs& outputs() const { return outputs_; }
  float score() const { return score_; }

 private:
  std::shared_ptr<const SearchRules> rules_;
  std::optional<Sampler> sampler_;
  std::shared_ptr<const DraftBias> bias_;
  size_t limit_;
  Outputs outputs_;  // forced and chosen; has its final capacity
  float score_ = 0;  // sum of the log-probabilities
};

}  // namespace ct2triton
