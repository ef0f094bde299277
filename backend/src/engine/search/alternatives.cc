// SPDX-License-Identifier: Apache-2.0
#include "engine/search/alternatives.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/compute/top_candidates.h"
#include "engine/search/several_draws.h"

namespace ct2triton {

Alternatives::Alternatives(const SearchRules& rules, const BeamSettings& settings,
                           const Outputs& forced, size_t limit,
                           const std::optional<Sampler>& sampler, const RowAlignment* alignment)
    : first_rules_(rules.WithMinLength(1)),
      rest_rules_(rules.WithMinLength(rules.min_length() -
                                      std::min(rules.min_length(), forced.size() + 1))),
      settings_(settings),
      forced_(forced),
      limit_(limit),
      sampler_(sampler),
      alignment_(alignment),
      slots_(settings.hypotheses * settings.beams),
      length_(forced.size()) {
  strands_.reserve(slots_.size());
  for (auto& slots : slots_) slots.reserve(limit + 1);
}

int32_t Alternatives::last(size_t beam) const {
  const Strand& strand = strands_[beam];
  const Alternative& alternative = alternatives_[strand.alternative];
  return alternative.rest->length() == 0 ? alternative.first : alternative.rest->last(strand.beam);
}

void Alternatives::AddRules(std::vector<OutputRules>* all) const {
  if (alternatives_.empty()) {
    OutputRules rules = first_rules_->For(nothing_);
    rules.candidates = 2 * settings_.hypotheses;
    rules.sequences = 1;
    rules.of_best = true;
    return all->push_back(std::move(rules));
  }
  for (const Alternative& alternative : alternatives_) {
    if (alternative.rest != nullptr) alternative.rest->AddRules(all);
  }
}

void Alternatives::Choose(const Found* found) {
  if (alternatives_.empty()) return ChooseFirst(found->candidates);
  for (Alternative& alternative : alternatives_) {
    if (alternative.rest == nullptr) continue;
    WideSearch& rest = *alternative.rest;
    rest.Choose(found);
    found += rest.beams();
    alternative.rest_result.reset();
    if (rest.Ends()) alternative.rest_result = rest.Results().front();
  }
}

void Alternatives::ChooseFirst(const std::vector<Candidate>& candidates) {
  std::vector<Hypothesis> firsts;
  for (size_t i = 0; i < settings_.hypotheses; ++i) {
    firsts.push_back({{candidates[i].output}, candidates[i].score});
  }
  next_.clear();
  for (const auto& first : BestFirst(std::move(firsts), *first_rules_, settings_.hypotheses)) {
    next_.push_back({first.outputs.front(), first.score, nullptr, std::nullopt});
    if (rest_limit() > 0) next_.back().rest = NewRest(next_.size() - 1);
  }
}

std::unique_ptr<WideSearch> Alternatives::NewRest(size_t alternative) const {
  auto sampler = sampler_;
  if (sampler) sampler = sampler->OfSequence(alternative);
  const AlignedSlots aligned{alignment_, FirstSlot(alternative)};
  if (settings_.beams == 1) {
    return std::make_unique<SeveralDraws>(rest_rules_, 1, Outputs(), rest_limit(), sampler,
                                          aligned);
  }
  BeamSettings settings = settings_;
  settings.hypotheses = 1;
  return std::make_unique<BeamSearch>(rest_rules_, settings, Outputs(), rest_limit(), sampler,
                                      BeamBias(), aligned);
}

bool Alternatives::Ends() const {
  if (alternatives_.empty()) return rest_limit() == 0;
  return std::all_of(alternatives_.begin(), alternatives_.end(),
                     [](const Alternative& each) { return each.rest_result.has_value(); });
}

std::vector<WideSearch::Hypothesis> Alternatives::Results() const {
  std::vector<Hypothesis> results;
  for (const Alternative& each : alternatives_.empty() ? next_ : alternatives_) {
    Hypothesis result{forced_, each.score};
    result.outputs.push_back(each.first);
    result.positions = PositionsOf({alignment_}, nullptr, result.outputs.size());
    if (each.rest_result) {
      const auto& rest = *each.rest_result;
      result.outputs.insert(result.outputs.end(), rest.outputs.begin(), rest.outputs.end());
      result.positions.insert(result.positions.end(), rest.positions.begin(), rest.positions.end());
      result.score += rest.score;
    }
    results.push_back(std::move(result));
  }
  return results;
}

// Allocates no memory.
void Alternatives::Accept() noexcept {
  ++length_;
  if (alternatives_.empty()) {
    alternatives_ = std::move(next_);
  } else {
    for (Alternative& each : alternatives_) {
      if (each.rest == nullptr) continue;
      each.rest->Accept();
      if (each.rest_result) each.rest.reset();
    }
  }
  strands_.clear();
  for (size_t i = 0; i < alternatives_.size(); ++i) {
    const auto* rest = alternatives_[i].rest.get();
    for (size_t beam = 0; rest != nullptr && beam < rest->beams(); ++beam) AddStrand(i, beam);
  }
}

// Slots of forced tokens come first, then those of each search in order.
size_t Alternatives::FirstSlot(size_t alternative) const {
  return 1 + forced_.size() + alternative * SlotsFor(settings_.beams, 0, rest_limit());
}

void Alternatives::AddStrand(size_t alternative, size_t beam) noexcept {
  const WideSearch& rest = *alternatives_[alternative].rest;
  const size_t shared = 1 + forced_.size();
  auto& slots = slots_[strands_.size()];
  slots.resize(length_ + 1);
  std::iota(slots.begin(), slots.end(), 0);
  slots[shared] = static_cast<int32_t>(FirstSlot(alternative));
  for (size_t t = 1; t <= rest.length(); ++t)
    slots[shared + t] = slots[shared] + rest.slots(beam)[t];
  strands_.push_back({alternative, beam});
}

}  // namespace ct2triton
