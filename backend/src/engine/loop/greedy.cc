// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/greedy.h"

#include <utility>

namespace ct2triton {

GreedySearch::GreedySearch(std::shared_ptr<const SearchRules> rules, const Outputs& forced,
                           size_t limit, const std::optional<Sampler>& sampler)
    : rules_(std::move(rules)), sampler_(sampler), limit_(limit) {
  outputs_.reserve(limit_);
  outputs_.assign(forced.begin(), forced.end());
}

Choice GreedySearch::Choose(float* logits, size_t outputs, const Kernels& kernels,
                            const LogSoftmax& log_softmax) const {
  Prepare(logits, outputs, log_softmax);
  return Pick(logits, outputs, kernels);
}

void GreedySearch::Prepare(float* logits, size_t outputs, const LogSoftmax& log_softmax) const {
  rules_->Apply(outputs_, logits);
  if (rules_->scored()) log_softmax.Apply(logits, outputs);
}

Choice GreedySearch::Pick(const float* scores, size_t outputs, const Kernels& kernels) const {
  const size_t place = sampler_ ? sampler_->One(scores, outputs, outputs_.size())
                                : kernels.first_maximum(scores, outputs);
  return {static_cast<int32_t>(place), rules_->scored() ? scores[place] : 0};
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
