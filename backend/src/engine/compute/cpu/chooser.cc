// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/chooser.h"

#include <algorithm>
#include <map>

namespace ct2triton {
namespace {

constexpr size_t kMostBest = 64;  // outputs of a row: they are inserted one by one

bool WantsLogits(const OutputRules& rules) {
  return rules.logits || rules.ChangesLogits() || rules.best > kMostBest;
}

// Where the room for logits was larger than all of so many products wanted, it shrinks.
constexpr size_t kProducts = 32;
constexpr size_t kKeptFloats = size_t{1} << 18;  // that a loop may keep while rows run

}  // namespace

// 64 rows that write 256,000 logits take 66 MB, and the next ones may write none.
float* Chooser::LogitsRoom(size_t count) {
  largest_ = std::max(largest_, count);
  if (++products_ == kProducts) {
    logits_.Trim(std::max(2 * largest_, kKeptFloats));
    largest_ = products_ = 0;
  }
  float* room = logits_.Room(count);
  Count();
  return room;
}

void Chooser::Rest() noexcept {
  logits_.Trim(0);
  Count();
}

void Chooser::Count() noexcept {
  const size_t bytes = logits_.size() * sizeof(float);
  *logits_bytes_ += bytes - counted_;
  counted_ = bytes;
}

// With room in logits_ and top_ for what is to be written.
std::vector<products::ChoiceRules> Chooser::RulesOf(const std::vector<OutputRules>& given) {
  size_t writing = 0;
  size_t best = 0;
  for (const OutputRules& one : given) {
    if (WantsLogits(one)) {
      writing += model_.Candidates(one.map);
    } else {
      best += one.best;
    }
  }
  float* logits = LogitsRoom(writing);
  top_.resize(best);
  auto* top = top_.data();
  std::vector<products::ChoiceRules> rules(given.size());
  for (size_t row = 0; row < given.size(); ++row) {
    const OutputRules& one = given[row];
    if (WantsLogits(one)) {
      rules[row].logits = logits;
      logits += model_.Candidates(one.map);
      continue;
    }
    rules[row].log_total = one.best > 0 || one.scored;
    rules[row].forbidden = one.forbidden;
    rules[row].top = one.best > 0 ? top : nullptr;
    rules[row].wanted = static_cast<int32_t>(one.best);
    top += one.best;
  }
  return rules;
}

std::vector<Found> Chooser::Choose(const std::vector<OutputRules>& rules, const float* hidden) {
  const auto same_map = [&](const OutputRules& one) { return one.map == rules.front().map; };
  const auto asked = RulesOf(rules);
  std::vector<products::Choice> chosen(rules.size());
  if (std::all_of(rules.begin(), rules.end(), same_map)) {
    if (!rules.empty()) model_.ProjectionTo(rules.front().map).Choose(hidden, asked, chosen.data());
  } else {
    ChooseByMap(rules, hidden, asked, &chosen);
  }
  std::vector<Found> found(rules.size());
  for (size_t row = 0; row < rules.size(); ++row) {
    found[row] = FoundBy(rules[row], asked[row], chosen[row]);
  }
  return found;
}

// One product for each map.
void Chooser::ChooseByMap(const std::vector<OutputRules>& rules, const float* hidden,
                          const std::vector<products::ChoiceRules>& asked,
                          std::vector<products::Choice>* chosen) {
  const size_t width = model_.shape().width;
  std::map<const VocabularyMap*, std::vector<size_t>> rows_of;
  for (size_t row = 0; row < rules.size(); ++row) rows_of[rules[row].map].push_back(row);
  for (const auto& [map, rows] : rows_of) {
    float* to = gathered_.Room(rows.size() * width);
    std::vector<products::ChoiceRules> asked_here;
    for (const size_t row : rows) {
      to = std::copy_n(hidden + row * width, width, to);
      asked_here.push_back(asked[row]);
    }
    std::vector<products::Choice> chosen_here(rows.size());
    model_.ProjectionTo(map).Choose(gathered_.data(), asked_here, chosen_here.data());
    for (size_t i = 0; i < rows.size(); ++i) (*chosen)[rows[i]] = chosen_here[i];
  }
}

Found Chooser::FoundBy(const OutputRules& rules, const products::ChoiceRules& asked,
                       const products::Choice& chosen) const {
  Found found;
  if (rules.best > 0 || rules.logits) {
    found.logits = asked.logits;
    found.best = {asked.top, static_cast<size_t>(chosen.found), chosen.log_total};
  } else if (asked.logits != nullptr) {
    const size_t outputs = model_.Candidates(rules.map);
    ApplyRules(rules, asked.logits, outputs, model_.kernels());
    found.choice = PickToken(rules, asked.logits, outputs, model_.kernels());
  } else {
    found.choice.output = static_cast<int32_t>(chosen.output);
    if (asked.log_total) found.choice.log_probability = chosen.logit - chosen.log_total;
  }
  return found;
}

}  // namespace ct2triton
