// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/search/draft.h"
#include "engine/search/greedy.h"

namespace ct2triton {

// A greedy search that may choose several tokens at one step: the next one, and what follows each
// token of a draft. They hold up to the first that is not the draft's, so that the answer is the
// one without a draft. Choose changes nothing that shows; Accept makes it true.
class DraftedSearch {
 public:
  // Of a draft, so many tokens are tried at one step: those after a mistake are wasted.
  static constexpr size_t kDraftTokensPerStep = 16;

  DraftedSearch(GreedySearch search, Draft draft)
      : search_(std::move(search)), draft_(std::move(draft)) {}

  // Decides what is tried at this step, at most `most` tokens. Returns the outputs.
  const Outputs& Try(size_t most);
  size_t tried() const { return tried_.size(); }
  // Adds the rules of each choice of this step: one more than tokens are tried.
  void AddRules(std::vector<OutputRules>* rules) const;
  // found: what was found by these.
  void Choose(const Found* found);
  // The tokens of this step, in order; never none.
  const std::vector<Choice>& chosen() const { return chosen_; }
  // Whether the row ends with this step, and the score that it has then.
  bool Ends() const { return ends_; }
  float Score() const { return score_; }
  void Accept() noexcept;

  const SearchRules& rules() const { return search_.rules(); }

 private:
  GreedySearch search_;
  Draft draft_;
  Outputs tried_;
  std::vector<GreedySearch> ahead_;  // the search after one of these, after two, ...
  std::vector<Choice> chosen_;
  bool ends_ = false;
  float score_ = 0;
};

}  // namespace ct2triton
