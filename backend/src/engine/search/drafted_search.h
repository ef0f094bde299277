// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/search/draft.h"
#include "engine/search/greedy.h"

namespace ct2triton {

// A greedy search that may choose several tokens at one step: the next one, and the one after each
// token of a draft. Choices count up to the first that differs from the draft, so the answer is the
// same as without a draft. Choose changes no visible state; Accept applies the choices.
class DraftedSearch {
 public:
  // Draft tokens checked per step; those after a wrong one are wasted.
  static constexpr size_t kDraftTokensPerStep = 16;

  DraftedSearch(GreedySearch search, Draft draft)
      : search_(std::move(search)), draft_(std::move(draft)) {}

  // Returns the draft outputs to check at this step, at most `most`.
  const Outputs& Try(size_t most);
  // Adds the rules of each choice of this step: one more than the checked tokens.
  void AddRules(std::vector<OutputRules>* rules) const;
  // found: the results for these rules.
  void Choose(const Found* found);
  // The tokens of this step, in order; at least one.
  const std::vector<Choice>& chosen() const { return chosen_; }
  // Whether the row ends with this step, and its final score.
  bool Ends() const { return ends_; }
  float Score() const { return score_; }
  void Accept() noexcept;

  const SearchRules& rules() const { return search_.rules(); }

 private:
  GreedySearch search_;
  Draft draft_;
  Outputs tried_;
  std::vector<GreedySearch> ahead_;  // the search after one chosen token, after two, ...
  std::vector<Choice> chosen_;
  bool ends_ = false;
  float score_ = 0;
};

}  // namespace ct2triton
