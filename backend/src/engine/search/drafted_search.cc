// SPDX-License-Identifier: Apache-2.0
#include "engine/search/drafted_search.h"

#include <algorithm>

namespace ct2triton {

// Stops before a token that ends the row, which is chosen anyway, or that cannot be chosen.
const Outputs& DraftedSearch::Try(size_t most) {
  tried_.clear();
  ahead_.clear();
  most = std::min(most, kDraftTokensPerStep);
  while (tried_.size() < most) {
    const int32_t output = draft_.Next(tried_.size());
    if (output < 0 || rules().IsEnd(output)) break;
    tried_.push_back(output);
    ahead_.push_back(search_.After(tried_));
  }
  return tried_;
}

void DraftedSearch::AddRules(std::vector<OutputRules>* all) const {
  all->push_back(search_.Rules());
  for (const GreedySearch& search : ahead_) all->push_back(search.Rules());
}

void DraftedSearch::Choose(const Found* found) {
  chosen_.clear();
  const GreedySearch* search = &search_;
  for (size_t i = 0;; ++i) {
    const Choice& choice = found[i].choice;
    chosen_.push_back(choice);
    ends_ = search->EndsWith(choice);
    if (ends_) score_ = search->ScoreWith(choice);
    if (ends_ || i == tried_.size() || choice.output != tried_[i]) return;
    ahead_[i].TakeScore(*search, choice);
    search = &ahead_[i];
  }
}

void DraftedSearch::Accept() noexcept {
  for (const Choice& choice : chosen_) {
    search_.Accept(choice);
    draft_.Follow(search_.outputs());
  }
}

}  // namespace ct2triton
