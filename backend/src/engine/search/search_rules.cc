// SPDX-License-Identifier: Apache-2.0
#include "engine/search/search_rules.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace ct2triton {
SearchRules::SearchRules(const SearchOptions& search, const Weights& weights) : map_(search.map()) {
  const DecodingOptions& options = search.options();
  const auto& vocabulary = weights.target();
  for (const int64_t id : search.ends()) ends_.push_back(Output(id));
  min_length_ = static_cast<size_t>(options.min_decoding_length);
  repetition_penalty_ = options.repetition_penalty;
  no_repeat_ngram_size_ = static_cast<size_t>(options.no_repeat_ngram_size);
  if (options.disable_unk) disabled_.push_back(Output(vocabulary.to_id(weights.files().unk_token)));
  for (const Ids& ids : search.suppressed()) {
    Outputs sequence;
    for (const int64_t id : ids) {  // by name, as in CTranslate2
      const int32_t output = Output(vocabulary.by_name(id));
      if (output >= 0) sequence.push_back(output);
    }
    if (sequence.size() == 1) disabled_.push_back(sequence.front());
    if (sequence.size() > 1) sequences_.push_back(std::move(sequence));
  }
  const bool several_draws = options.beam_size == 1 && options.num_hypotheses > 1;
  scored_ = options.return_scores || (several_draws && !options.return_alternatives);
  length_penalty_ = options.length_penalty;
}

std::shared_ptr<const SearchRules> SearchRules::WithMinLength(size_t tokens) const {
  auto rules = std::make_shared<SearchRules>(*this);
  rules->min_length_ = tokens;
  return rules;
}

int32_t SearchRules::Output(int64_t id) const {
  if (map_ == nullptr) return static_cast<int32_t>(id);
  const auto& known = map_->numbered();
  const auto place = std::lower_bound(known.begin(), known.end(), id);
  if (place == known.end() || *place != id) return -1;
  return static_cast<int32_t>(place - known.begin());
}

int64_t SearchRules::Id(int32_t output) const {
  return map_ == nullptr ? output : map_->Id(static_cast<size_t>(output));
}

bool SearchRules::IsEnd(int32_t output) const {
  return std::find(ends_.begin(), ends_.end(), output) != ends_.end();
}

float SearchRules::Normalized(float score, size_t length) const {
  return score / std::pow(static_cast<float>(length), length_penalty_);
}

OutputRules SearchRules::For(const Outputs& before) const {
  OutputRules rules;
  rules.map = map_;
  rules.forbidden = Disabled(before);
  rules.penalty = repetition_penalty_;
  rules.before = &before;
  rules.ends = &ends_;
  rules.min_length = min_length_;
  rules.scored = scored_;
  return rules;
}

std::vector<int64_t> SearchRules::Disabled(const Outputs& before) const {
  std::vector<int64_t> disabled(disabled_.begin(), disabled_.end());
  if (before.size() < min_length_) disabled.insert(disabled.end(), ends_.begin(), ends_.end());
  if (no_repeat_ngram_size_ > 0) AddRepeatedNgrams(before, &disabled);
  for (const auto& sequence : sequences_) {
    const size_t known = sequence.size() - 1;
    if (before.size() < known) continue;
    const auto last = before.end() - static_cast<std::ptrdiff_t>(known);
    if (std::equal(last, before.end(), sequence.begin())) disabled.push_back(sequence.back());
  }
  std::sort(disabled.begin(), disabled.end());
  disabled.erase(std::unique(disabled.begin(), disabled.end()), disabled.end());
  return disabled;
}

// A token that followed the last n - 1 tokens before must not follow them again.
void SearchRules::AddRepeatedNgrams(const Outputs& before, std::vector<int64_t>* disabled) const {
  const size_t size = no_repeat_ngram_size_;
  if (before.size() < size) return;
  const auto known = static_cast<std::ptrdiff_t>(size - 1);
  const auto last = before.end() - known;
  for (auto begin = before.begin(); begin + known < before.end(); ++begin) {
    if (std::equal(last, before.end(), begin)) disabled->push_back(begin[known]);
  }
}

std::shared_ptr<const SearchRules> SearchRulesCache::Get(
    const std::shared_ptr<const SearchOptions>& search) {
  Used& last = last_[search->map()];
  if (last.search != search) {
    last.rules = std::make_shared<const SearchRules>(*search, weights_);
    last.search = search;
  }
  return last.rules;
}

}  // namespace ct2triton
