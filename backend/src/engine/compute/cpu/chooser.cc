// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/chooser.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ct2triton {
namespace {

constexpr size_t kMostBest = 64;  // outputs of a row; more are too slow to insert one by one

bool WantsLogits(const OutputRules& rules) {
  return rules.ChangesLogits() || rules.Best() > kMostBest ||
         (rules.candidates > 0 && !rules.of_best);
}

// The logits buffer shrinks if it was larger than each of the last kProducts products needed.
constexpr size_t kProducts = 32;
constexpr size_t kKeptFloats = size_t{1} << 18;  // that a loop may keep while rows run

}  // namespace

// Shrinks the buffer at times: 64 rows with 256,000 logits take 66 MB, and later rows may write
// none.
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

// Also makes room in logits_ and top_ for the results.
std::vector<products::ChoiceRules> Chooser::RulesOf(const std::vector<OutputRules>& given) {
  size_t writing = 0;
  size_t best = 0;
  for (const OutputRules& one : given) {
    if (WantsLogits(one)) {
      writing += model_.Candidates(one.map);
    } else {
      best += one.Best();
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
    const size_t wanted = one.Best();
    rules[row].log_total = wanted > 0 || one.scored;
    rules[row].forbidden = one.forbidden;
    rules[row].top = wanted > 0 ? top : nullptr;
    rules[row].wanted = static_cast<int32_t>(wanted);
    top += wanted;
  }
  return rules;
}

std::vector<Found> Chooser::Choose(const std::vector<OutputRules>& rules, const float* hidden) {
  const auto same_map = [&](const OutputRules& one) { return one.map == rules.front().map; };
  const auto asked = RulesOf(rules);
  std::vector<products::ChosenLogit> chosen(rules.size());
  if (std::all_of(rules.begin(), rules.end(), same_map)) {
    if (!rules.empty())
      model_.ProjectionTo(rules.front().map)->Choose(hidden, asked, chosen.data());
  } else {
    ChooseByMap(rules, hidden, asked, &chosen);
  }
  std::vector<Found> found(rules.size());
  std::vector<OfferedOutput> offered;  // for searches with several sequences
  for (size_t row = 0; row < rules.size(); ++row) {
    float* const logits = asked[row].logits;
    if (rules[row].candidates > 0) {
      offered.resize(rules.size());
      offered[row] = {
          logits, {asked[row].top, static_cast<size_t>(chosen[row].found), chosen[row].log_total}};
      found[row].written = logits != nullptr;
    } else if (logits != nullptr) {
      found[row] =
          ChooseFrom(rules[row], logits, model_.Candidates(rules[row].map), model_.row_kernel());
    } else {
      found[row].choice.output = static_cast<int32_t>(chosen[row].output);
      if (asked[row].log_total) {
        found[row].choice.log_probability = chosen[row].logit - chosen[row].log_total;
      }
    }
  }
  if (!offered.empty()) Join(rules, offered, hidden, &found);
  return found;
}

void Chooser::Join(const std::vector<OutputRules>& rules, const std::vector<OfferedOutput>& offered,
                   const float* hidden, std::vector<Found>* found) {
  std::vector<size_t> open;
  for (size_t row = 0; row < rules.size(); ++row) {
    if (rules[row].sequences == 0) continue;
    auto candidates = ChooseJointly(&rules[row], &offered[row], model_.Candidates(rules[row].map),
                                    model_.row_kernel());
    if (candidates) {
      (*found)[row].candidates = std::move(*candidates);
    } else {
      for (size_t i = 0; i < rules[row].sequences; ++i) open.push_back(row + i);
    }
  }
  if (!open.empty()) JoinAgain(rules, open, hidden, found);
}

// Joins outputs again, from all logits.
void Chooser::JoinAgain(const std::vector<OutputRules>& rules, const std::vector<size_t>& open,
                        const float* hidden, std::vector<Found>* found) {
  const size_t width = model_.shape().width;
  float* const gathered = open_.Room(open.size() * width);
  float* to = gathered;
  std::vector<OutputRules> again;
  for (const size_t row : open) {
    to = std::copy_n(hidden + row * width, width, to);
    again.push_back(rules[row]);
    again.back().of_best = false;
  }
  std::vector<Found> joined = Choose(again, gathered);
  for (size_t i = 0; i < open.size(); ++i) (*found)[open[i]] = std::move(joined[i]);
}

std::vector<std::vector<float>> Chooser::Logits(const VocabularyMap* map, const float* hidden,
                                                size_t rows) const {
  std::vector<std::vector<float>> logits(rows, std::vector<float>(model_.Candidates(map)));
  std::vector<products::ChoiceRules> rules(rows);
  for (size_t row = 0; row < rows; ++row) rules[row].logits = logits[row].data();
  std::vector<products::ChosenLogit> chosen(rows);
  model_.TrialProjectionTo(map)->Choose(hidden, rules, chosen.data());
  return logits;
}

// One product for each map.
void Chooser::ChooseByMap(const std::vector<OutputRules>& rules, const float* hidden,
                          const std::vector<products::ChoiceRules>& asked,
                          std::vector<products::ChosenLogit>* chosen) {
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
    std::vector<products::ChosenLogit> chosen_here(rows.size());
    model_.ProjectionTo(map)->Choose(gathered_.data(), asked_here, chosen_here.data());
    for (size_t i = 0; i < rows.size(); ++i) (*chosen)[rows[i]] = chosen_here[i];
  }
}

}  // namespace ct2triton
