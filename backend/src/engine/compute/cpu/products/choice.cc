// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/products/choice.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace ct2triton::products {
namespace {

// Not infinity, so that differences are never NaN.
constexpr float kLowest = std::numeric_limits<float>::lowest();

}  // namespace

SplitChoice::SplitChoice(const std::vector<ChoiceRules>& rules, size_t parts, size_t members,
                         int panel_outputs)
    : rules_(rules),
      parts_(parts),
      panel_outputs_(panel_outputs),
      started_(members),
      states_(new ChoiceState[members * rules.size()]),
      chosen_(parts * rules.size()) {
  for (const ChoiceRules& row : rules) {
    if (row.top != nullptr) wanted_ += static_cast<size_t>(row.wanted);
  }
  if (members > 1 && wanted_ > 0) top_.reset(new RankedOutput[(members - 1) * wanted_]);
}

// The first member writes its best outputs where they are wanted, others to memory of their own.
void SplitChoice::Start(size_t member) noexcept {
  started_[member] = 1;
  ChoiceState* state = &states_[member * rules_.size()];
  RankedOutput* top = member == 0 ? nullptr : top_.get() + (member - 1) * wanted_;
  for (const ChoiceRules& row : rules_) {
    state->keep_sum = row.log_total;
    state->logits = row.logits;
    state->forbidden_end = row.forbidden.data() + row.forbidden.size();
    state->wanted = row.top == nullptr ? 0 : row.wanted;
    state->top = member == 0 ? row.top : top;
    state->found = 0;
    state->least = kLowest;
    if (member > 0) top += state->wanted;
    ++state;
  }
}

ChoiceState* SplitChoice::Begin(size_t member, int64_t first_output) noexcept {
  if (started_[member] == 0) Start(member);
  ChoiceState* const states = &states_[member * rules_.size()];
  for (size_t row = 0; row < rules_.size(); ++row) {
    ChoiceState& state = states[row];
    std::fill(std::begin(state.best), std::end(state.best), kLowest);
    std::fill(std::begin(state.panel), std::end(state.panel),
              static_cast<int32_t>(first_output / panel_outputs_));
    std::fill(std::begin(state.sum), std::end(state.sum), 0.0f);
    state.forbidden =
        std::lower_bound(rules_[row].forbidden.data(), state.forbidden_end, first_output);
  }
  return states;
}

// Of equal logits the first output wins.
void SplitChoice::End(size_t member, size_t part) noexcept {
  const ChoiceState* state = &states_[member * rules_.size()];
  for (size_t row = 0; row < rules_.size(); ++row, ++state) {
    PartChoice& choice = chosen_[part * rules_.size() + row];
    choice = {panel_outputs_ * int64_t{state->panel[0]}, state->best[0], 0};
    for (int lane = 1; lane < panel_outputs_; ++lane) {
      const int64_t output = panel_outputs_ * int64_t{state->panel[lane]} + lane;
      const float logit = state->best[lane];
      if (logit > choice.logit || (logit == choice.logit && output < choice.output)) {
        choice.output = output;
        choice.logit = logit;
      }
    }
    if (!state->keep_sum) continue;
    for (int lane = 0; lane < panel_outputs_; ++lane) {
      choice.total += state->sum[lane] * std::exp(double{state->best[lane]} - double{choice.logit});
    }
  }
}

void SplitChoice::Finish(ChosenLogit* choices) {
  for (size_t row = 0; row < rules_.size(); ++row) {
    choices[row] = Join(row);
    choices[row].found = JoinTop(row);
  }
}

ChosenLogit SplitChoice::Join(size_t row) const noexcept {
  const PartChoice* best = &chosen_[row];
  for (size_t part = 1; part < parts_; ++part) {
    const PartChoice& other = chosen_[part * rules_.size() + row];
    if (other.logit > best->logit) best = &other;
  }
  ChosenLogit choice{best->output, best->logit, 0, 0};
  if (!rules_[row].log_total) return choice;
  double total = 0;
  for (size_t part = 0; part < parts_; ++part) {
    const PartChoice& one = chosen_[part * rules_.size() + row];
    total += one.total * std::exp(double{one.logit} - double{best->logit});
  }
  choice.log_total = static_cast<float>(choice.logit + std::log(total));
  return choice;
}

// Returns their number.
int32_t SplitChoice::JoinTop(size_t row) {
  if (rules_[row].top == nullptr) return 0;
  std::vector<RankedOutput> all;
  for (size_t member = 0; member < started_.size(); ++member) {
    if (started_[member] == 0) continue;
    const ChoiceState& state = states_[member * rules_.size() + row];
    all.insert(all.end(), state.top, state.top + state.found);
  }
  const auto better = [](const RankedOutput& a, const RankedOutput& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.output < b.output);
  };
  std::sort(all.begin(), all.end(), better);
  const size_t found = std::min(all.size(), static_cast<size_t>(rules_[row].wanted));
  std::copy_n(all.begin(), found, rules_[row].top);
  return static_cast<int32_t>(found);
}

}  // namespace ct2triton::products
