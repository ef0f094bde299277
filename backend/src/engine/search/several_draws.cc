// SPDX-License-Identifier: Apache-2.0
#include "engine/search/several_draws.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ct2triton {

SeveralDraws::SeveralDraws(const std::shared_ptr<const SearchRules>& rules, size_t hypotheses,
                           const Outputs& forced, size_t limit,
                           const std::optional<Sampler>& sampler, const AlignedSlots& aligned)
    : rules_(rules),
      sampler_(sampler),
      aligned_(aligned),
      running_(hypotheses),
      forced_(forced.size()),
      length_(forced.size()) {
  std::iota(running_.begin(), running_.end(), 0);
  for (const size_t i : running_) {
    auto own = sampler;
    if (own) own = own->OfSequence(i);
    draws_.push_back({GreedySearch(rules, forced, limit, own), {}, {}});
    auto& slots = draws_.back().slots;
    slots.reserve(limit);
    slots.resize(1 + forced.size());
    std::iota(slots.begin(), slots.end(), 0);
  }
}

void SeveralDraws::AddRules(std::vector<OutputRules>* all) const {
  if (has_chosen_) {
    for (const size_t i : running_) all->push_back(draws_[i].search.Rules());
    return;
  }
  OutputRules rules = draws_.front().search.Rules();
  if (sampler_) rules.draw = {*sampler_, length_, draws_.size()};
  all->push_back(std::move(rules));
}

void SeveralDraws::Choose(const Found* found) {
  for (size_t i = 0; i < running_.size(); ++i) {
    Choice& choice = draws_[running_[i]].choice;
    if (has_chosen_) {
      choice = found[i].choice;
    } else if (sampler_) {
      choice = {found->candidates[i].output, found->candidates[i].score};
    } else {
      choice = found->choice;
    }
  }
}

bool SeveralDraws::Ends() const {
  return std::all_of(running_.begin(), running_.end(),
                     [this](size_t i) { return draws_[i].search.EndsWith(draws_[i].choice); });
}

std::vector<WideSearch::Hypothesis> SeveralDraws::Results() const {
  std::vector<Hypothesis> all;
  for (const Draw& draw : draws_) {
    all.push_back({draw.search.outputs(), draw.search.score()});
    if (!draw.ended) {
      all.back().outputs.push_back(draw.choice.output);
      all.back().score += draw.choice.log_probability;
    }
    all.back().positions = PositionsOf(aligned_, draw.slots.data(), all.back().outputs.size());
  }
  const size_t wanted = all.size();
  return BestFirst(std::move(all), *rules_, wanted);
}

// The next tokens of all draws get adjacent slots, so that low slots are used first.
void SeveralDraws::Accept() noexcept {
  has_chosen_ = true;
  ++length_;
  for (const size_t i : running_) {
    Draw& draw = draws_[i];
    draw.ended = draw.search.EndsWith(draw.choice);
    draw.search.Accept(draw.choice);
    const size_t next = 1 + forced_ + (length_ - forced_ - 1) * draws_.size() + i;
    if (!draw.ended) draw.slots.push_back(static_cast<int32_t>(next));
  }
  const auto ended = std::remove_if(running_.begin(), running_.end(),
                                    [this](size_t i) { return draws_[i].ended; });
  running_.erase(ended, running_.end());
}

}  // namespace ct2triton
