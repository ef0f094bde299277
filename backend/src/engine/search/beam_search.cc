// SPDX-License-Identifier: Apache-2.0
#include "engine/search/beam_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace ct2triton {
BeamSettings BeamSettings::Of(const SearchOptions& search) {
  const DecodingOptions& options = search.options();
  BeamSettings settings;
  settings.beams = static_cast<size_t>(options.beam_size);
  settings.hypotheses = static_cast<size_t>(options.num_hypotheses);
  settings.most_finished = static_cast<size_t>(
      std::round(static_cast<float>(options.beam_size) * static_cast<float>(options.patience)));
  settings.ends_early = options.length_penalty == 0;
  return settings;
}

BeamSearch::BeamSearch(std::shared_ptr<const SearchRules> rules, const BeamSettings& settings,
                       const Outputs& forced, size_t limit, const std::optional<Sampler>& sampler,
                       BeamBias bias, const AlignedSlots& aligned)
    : rules_(std::move(rules)),
      settings_(settings),
      sampler_(sampler),
      bias_(std::move(bias)),
      aligned_(aligned),
      diverged_(settings.beams, 0),
      forced_(forced.size()),
      limit_(limit),
      beams_{{forced, {}, 0}} {}

// CTranslate2 has all beams from the start; while tokens are forced, all but one are pushed back.
void BeamSearch::AddRules(std::vector<OutputRules>* all) const {
  const size_t first = all->size();
  bool of_best = !sampler_;
  for (size_t i = 0; i < beams_.size(); ++i) {
    OutputRules rules = rules_->For(beams_[i].outputs);
    rules.candidates = 2 * settings_.beams;
    rules.score = beams_[i].score;
    if (bias_.prefix && diverged_[i] == 0) {
      rules.favored = bias_.prefix->Next(length());
      rules.bias = bias_.prefix->beta();
      rules.as_library = true;
    } else if (bias_.draft) {
      rules.favored = bias_.draft->Next(beams_[i].outputs, *rules_);
      rules.bias = bias_.draft->bias();
    }
    of_best = of_best && !rules.favored;
    all->push_back(std::move(rules));
  }
  for (size_t i = first; i < all->size(); ++i) (*all)[i].of_best = of_best;
  OutputRules& rules = (*all)[first];
  rules.sequences = beams_.size();
  if (IsFirstChoice() && forced_ > 0) rules.copies = settings_.beams - 1;
  if (sampler_) rules.draw = {*sampler_, length()};
}

void BeamSearch::Choose(const Found* found) {
  std::vector<Candidate> candidates = found->candidates;
  if (IsFirstChoice()) {
    for (size_t k = 0; k < candidates.size(); ++k) {
      candidates[k].beam = 0;  // the other beams are copies of it
      if (k > 0 && forced_ > 0 && rules_->IsEnd(candidates[k].output)) {
        candidates[k] = {kPushedBack, 0, 0};
      }
    }
  }
  Next next;
  if (bias_.prefix) next.diverged = bias_.prefix->After(length(), diverged_, candidates);
  const std::vector<size_t> active = Finish(candidates, &next);
  if (!next.ends) {
    std::vector<Candidate> chosen;
    for (const size_t k : active) {
      chosen.push_back(candidates[k]);
      next.beams.push_back({WithOutput(candidates[k]), {}, candidates[k].score});
    }
    GiveSlots(chosen, &next.beams);
  }
  finished_.reserve(finished_.size() + next.finished.size());  // Accept must not fail
  next_ = std::move(next);
}

// Records the hypotheses that end at this step, and whether the search ends. Returns the candidates
// to continue.
std::vector<size_t> BeamSearch::Finish(const std::vector<Candidate>& candidates, Next* next) const {
  const bool at_limit = length() + 1 >= limit_;
  std::vector<size_t> active;
  size_t reserve = settings_.beams;  // the next candidate that may replace one
  next->top_ended = top_ended_;
  for (size_t k = 0; k < settings_.beams; ++k) {
    size_t goes_on = k;
    if (at_limit || rules_->IsEnd(candidates[k].output)) {
      next->top_ended |= k == 0;
      next->finished.push_back(Ended(candidates[k]));
      while (reserve < candidates.size() && rules_->IsEnd(candidates[reserve].output)) ++reserve;
      if (reserve < candidates.size()) goes_on = reserve++;
    }
    active.push_back(goes_on);
  }
  const size_t finished = finished_.size() + next->finished.size();
  next->ends =
      at_limit || (settings_.ends_early ? next->top_ended && finished >= settings_.hypotheses
                                        : finished >= settings_.most_finished);
  return active;
}

// Reads the alignment now, because its last tokens' slots may be reused later.
BeamSearch::Hypothesis BeamSearch::Ended(const Candidate& candidate) const {
  const int32_t* slots = IsFirstChoice() ? nullptr : beams_[candidate.beam].slots.data();
  return {WithOutput(candidate), candidate.score, PositionsOf(aligned_, slots, length() + 1)};
}

Outputs BeamSearch::WithOutput(const Candidate& candidate) const {
  const Outputs& before = beams_[candidate.beam].outputs;
  Outputs outputs;
  outputs.reserve(before.size() + 1);
  outputs.assign(before.begin(), before.end());
  outputs.push_back(candidate.output);
  return outputs;
}

// Assigns the past tokens' slots, and the lowest free slot for the new token, so that untouched
// memory stays untouched.
void BeamSearch::GiveSlots(const std::vector<Candidate>& chosen, std::vector<Beam>* beams) const {
  const size_t past = IsFirstChoice() ? 1 + forced_ : beams_.front().slots.size();
  std::vector<char> taken(SlotsFor(settings_.beams, forced_, limit_), 0);
  for (size_t i = 0; i < chosen.size(); ++i) {
    auto& slots = (*beams)[i].slots;
    slots.resize(past + 1);
    if (IsFirstChoice()) {
      std::iota(slots.begin(), slots.end(), 0);
    } else {
      const auto& before = beams_[chosen[i].beam].slots;
      std::copy(before.begin(), before.end(), slots.begin());
    }
    for (size_t t = 0; t < past; ++t) taken[static_cast<size_t>(slots[t])] = 1;
  }
  size_t free = 0;
  for (Beam& beam : *beams) {
    while (taken[free] != 0) ++free;
    beam.slots.back() = static_cast<int32_t>(free++);
  }
}

std::vector<BeamSearch::Hypothesis> BeamSearch::Results() const {
  std::vector<Hypothesis> all = finished_;
  all.insert(all.end(), next_.finished.begin(), next_.finished.end());
  return BestFirst(std::move(all), *rules_, settings_.hypotheses);
}

std::vector<BeamSearch::Hypothesis> BeamSearch::ResultsOfForced(const SearchRules& rules,
                                                                const BeamSettings& settings,
                                                                const Outputs& forced) {
  std::vector<Hypothesis> all(settings.beams, {forced, kPushedBack});
  all.front().score = 0;
  return BestFirst(std::move(all), rules, settings.hypotheses);
}

void BeamSearch::Accept() noexcept {
  for (Hypothesis& hypothesis : next_.finished) finished_.push_back(std::move(hypothesis));
  top_ended_ = next_.top_ended;
  diverged_ = std::move(next_.diverged);
  beams_ = std::move(next_.beams);
  next_ = Next();
}

}  // namespace ct2triton
