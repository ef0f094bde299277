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

Choice GreedySearch::Choose(float* logits, size_t outputs, const Kernels& kernels) const {
  Prepare(logits, outputs, kernels);
  return Pick(logits, outputs, kernels);
}

void GreedySearch::Prepare(float* logits, size_t outputs, const Kernels& kernels) const {
  rules_->Apply(outputs_, logits);
  if (rules_->scored() || Leaning()) kernels.rows->log_softmax(logits, outputs);
}

std::optional<int32_t> GreedySearch::Leaning() const {
  return bias_ ? bias_->Next(outputs_, *rules_) : std::nullopt;
}

Choice GreedySearch::Pick(const float* scores, size_t outputs, const Kernels& kernels) const {
  const size_t place = sampler_ ? sampler_->One(scores, outputs, outputs_.size())
                                : kernels.first_maximum(scores, outputs);
  const auto best = static_cast<int32_t>(place);
  if (const auto leaning = Leaning()) return PickBiased(scores, best, *leaning);
  return {best, rules_->scored() ? scores[place] : 0};
}

// The bias lessens all others alike, so that only the best of them may win.
Choice GreedySearch::PickBiased(const float* log_probabilities, int32_t best,
                                int32_t leaning) const {
  Choice choice{leaning, bias_->OfDraft(log_probabilities[leaning])};
  const float other = bias_->OfOther(log_probabilities[best]);
  const bool first_of_equals = other == choice.log_probability && best < leaning;
  if (best != leaning && (other > choice.log_probability || first_of_equals)) {
    choice = {best, other};
  }
  if (!rules_->scored()) choice.log_probability = 0;
  return choice;
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
