// SPDX-License-Identifier: Apache-2.0
#include "engine/search/greedy.h"

#include <utility>

namespace ct2triton {

GreedySearch::GreedySearch(std::shared_ptr<const SearchRules> rules, const Outputs& forced,
                           size_t limit, const std::optional<Sampler>& sampler,
                           std::shared_ptr<const DraftBias> bias)
    : rules_(std::move(rules)), sampler_(sampler), bias_(std::move(bias)), limit_(limit) {
  outputs_.reserve(limit_);
  outputs_.assign(forced.begin(), forced.end());
}

OutputRules GreedySearch::Rules() const {
  OutputRules rules = rules_->For(outputs_);
  if (sampler_) rules.draw = {*sampler_, outputs_.size()};
  if (bias_) {
    rules.favored = bias_->Next(outputs_, *rules_);
    rules.bias = bias_->bias();
  }
  return rules;
}

bool GreedySearch::EndsWith(const Choice& choice) const {
  return outputs_.size() + 1 >= limit_ || rules_->IsEnd(choice.output);
}

float GreedySearch::ScoreWith(const Choice& choice) const {
  return rules_->Normalized(score_ + choice.log_probability, outputs_.size() + 1);
}

void GreedySearch::Accept(const Choice& choice) noexcept {
  outputs_.push_back(choice.output);
  score_ += choice.log_probability;
}

GreedySearch GreedySearch::After(const Outputs& outputs) const {
  GreedySearch search = *this;
  search.outputs_.insert(search.outputs_.end(), outputs.begin(), outputs.end());
  return search;
}

void GreedySearch::TakeScore(const GreedySearch& before, const Choice& choice) noexcept {
  score_ = before.score_ + choice.log_probability;
}

}  // namespace ct2triton
