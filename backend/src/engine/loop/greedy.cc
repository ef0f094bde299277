// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/greedy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <variant>

namespace ct2triton {
namespace {

// What CTranslate2 gives a token that must not be chosen.
constexpr float kDisabled = std::numeric_limits<float>::lowest();

int32_t OutputOf(const std::string& token, const Weights& weights, const GreedyRules& rules) {
  return rules.Output(static_cast<int64_t>(weights.target().to_id(token)));
}

}  // namespace

GreedyRules::GreedyRules(const Search& search, const Weights& weights)
    : map(search.UsesMap() ? &*weights.vocabulary_map() : nullptr) {
  const auto options = search.ForCall(1);  // as CTranslate2 would get them
  for (const size_t id : std::get<std::vector<size_t>>(options.end_token)) {
    ends.push_back(Output(static_cast<int64_t>(id)));
  }
  min_length = options.min_decoding_length;
  repetition_penalty = options.repetition_penalty;
  no_repeat_ngram_size = options.no_repeat_ngram_size;
  if (options.disable_unk) disabled.push_back(OutputOf(weights.files().unk_token, weights, *this));
  for (const auto& tokens : options.suppress_sequences) {
    std::vector<int32_t> sequence;
    for (const auto& token : tokens) {
      const int32_t output = OutputOf(token, weights, *this);
      if (output >= 0) sequence.push_back(output);
    }
    if (sequence.size() == 1) disabled.push_back(sequence.front());
    if (sequence.size() > 1) sequences.push_back(std::move(sequence));
  }
  scored = options.return_scores;
  length_penalty = options.length_penalty;
}

int32_t GreedyRules::Output(int64_t id) const {
  if (map == nullptr) return static_cast<int32_t>(id);
  const auto& known = map->numbered();
  const auto place = std::lower_bound(known.begin(), known.end(), id);
  if (place == known.end() || *place != id) return -1;
  return static_cast<int32_t>(place - known.begin());
}

int64_t GreedyRules::Id(int32_t output) const {
  return map == nullptr ? output : map->Id(static_cast<size_t>(output));
}

GreedySearch::GreedySearch(std::shared_ptr<const GreedyRules> rules,
                           const std::vector<int32_t>& forced, size_t limit)
    : rules_(std::move(rules)), limit_(limit) {
  outputs_.reserve(limit_);
  outputs_.assign(forced.begin(), forced.end());
}

Choice GreedySearch::Choose(float* logits, size_t outputs, const Kernels& kernels,
                            const LogSoftmax& log_softmax) const {
  ApplyOptions(logits);
  if (rules_->scored) log_softmax.Apply(logits, outputs);
  const size_t best = kernels.first_maximum(logits, outputs);
  return {static_cast<int32_t>(best), rules_->scored ? logits[best] : 0};
}

void GreedySearch::ApplyOptions(float* logits) const {
  const auto disable = [logits](const std::vector<int64_t>& outputs) {
    for (const int64_t output : outputs) logits[output] = kDisabled;
  };
  std::vector<int64_t> early, others;
  AddEarlyEnds(&early);
  disable(early);
  if (ChangesLogits()) Penalize(logits);
  AddOthers(&others);
  disable(others);
}

std::vector<int64_t> GreedySearch::Disabled() const {
  std::vector<int64_t> disabled;
  AddEarlyEnds(&disabled);
  AddOthers(&disabled);
  std::sort(disabled.begin(), disabled.end());
  disabled.erase(std::unique(disabled.begin(), disabled.end()), disabled.end());
  return disabled;
}

void GreedySearch::AddEarlyEnds(std::vector<int64_t>* disabled) const {
  if (outputs_.size() >= rules_->min_length) return;
  disabled->insert(disabled->end(), rules_->ends.begin(), rules_->ends.end());
}

void GreedySearch::AddOthers(std::vector<int64_t>* disabled) const {
  if (rules_->no_repeat_ngram_size > 0) AddRepeatedNgrams(disabled);
  disabled->insert(disabled->end(), rules_->disabled.begin(), rules_->disabled.end());
  for (const auto& sequence : rules_->sequences) {
    const size_t before = sequence.size() - 1;
    if (outputs_.size() < before) continue;
    const auto last = outputs_.end() - static_cast<std::ptrdiff_t>(before);
    if (std::equal(last, outputs_.end(), sequence.begin())) disabled->push_back(sequence.back());
  }
}

// Once per distinct token.
void GreedySearch::Penalize(float* logits) const {
  std::vector<int32_t> seen = outputs_;
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  const float penalty = rules_->repetition_penalty;
  for (const int32_t output : seen) {
    float& logit = logits[output];
    logit = logit < 0 ? logit * penalty : logit / penalty;
  }
}

// What followed the last n - 1 tokens before must not follow them again.
void GreedySearch::AddRepeatedNgrams(std::vector<int64_t>* disabled) const {
  const size_t size = rules_->no_repeat_ngram_size;
  if (outputs_.size() < size) return;
  const auto known = static_cast<std::ptrdiff_t>(size - 1);
  const auto last = outputs_.end() - known;
  for (auto begin = outputs_.begin(); begin + known < outputs_.end(); ++begin) {
    if (std::equal(last, outputs_.end(), begin)) disabled->push_back(begin[known]);
  }
}

bool GreedySearch::EndsWith(const Choice& choice) const {
  const auto& ends = rules_->ends;
  return outputs_.size() + 1 >= limit_ ||
         std::find(ends.begin(), ends.end(), choice.output) != ends.end();
}

float GreedySearch::ScoreWith(const Choice& choice) const {
  const auto length = static_cast<float>(outputs_.size() + 1);
  return (score_ + choice.log_probability) / std::pow(length, rules_->length_penalty);
}

void GreedySearch::Accept(const Choice& choice) noexcept {
  outputs_.push_back(choice.output);
  score_ += choice.log_probability;
}

std::shared_ptr<const GreedyRules> GreedyRulesCache::Get(
    const std::shared_ptr<const Search>& search) {
  if (search_ != search) {
    rules_ = std::make_shared<const GreedyRules>(*search, weights_);
    search_ = search;
  }
  return rules_;
}

}  // namespace ct2triton
