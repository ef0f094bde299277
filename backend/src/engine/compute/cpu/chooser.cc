// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/chooser.h"

#include <algorithm>

namespace ct2triton {
namespace {

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

Chooser::Wants Chooser::WantsOf(const Seeker& seeker) {
  if (seeker.greedy != nullptr) return {seeker.greedy->ChangesLogits(), 0};
  const size_t enough = seeker.wide == nullptr ? 0 : seeker.wide->EnoughOutputs();
  return {enough == 0, enough};
}

// With room in logits_ and top_ for what is to be written.
std::vector<products::ChoiceRules> Chooser::RulesOf(const std::vector<Seeker>& seekers,
                                                    size_t outputs) {
  std::vector<Wants> wants;
  size_t writing = 0;
  size_t best = 0;
  for (const Seeker& seeker : seekers) {
    wants.push_back(WantsOf(seeker));
    writing += wants.back().logits ? 1 : 0;
    best += wants.back().top;
  }
  float* logits = LogitsRoom(writing * outputs);
  top_.resize(best);
  auto* top = top_.data();
  std::vector<products::ChoiceRules> rules(seekers.size());
  for (size_t row = 0; row < seekers.size(); ++row) {
    const auto& [greedy, wide, beam] = seekers[row];
    if (wants[row].logits) {
      rules[row].logits = logits;
      logits += outputs;
      continue;
    }
    rules[row].log_total = greedy == nullptr || greedy->rules().scored();
    rules[row].forbidden = greedy != nullptr ? greedy->Disabled() : wide->Disabled(beam);
    rules[row].top = greedy != nullptr ? nullptr : top;
    rules[row].wanted = static_cast<int32_t>(wants[row].top);
    top += wants[row].top;
  }
  return rules;
}

std::vector<Found> Chooser::Choose(const std::vector<Seeker>& seekers, const float* hidden,
                                   const Linear& projection) {
  const auto rules = RulesOf(seekers, projection.outputs());
  std::vector<products::Choice> chosen(seekers.size());
  projection.Choose(hidden, rules, chosen.data());
  std::vector<Found> found(seekers.size());
  for (size_t row = 0; row < seekers.size(); ++row) {
    const auto& choice = chosen[row];
    const auto* greedy = seekers[row].greedy;
    if (greedy == nullptr) {
      found[row].logits = rules[row].logits;
      found[row].best = {rules[row].top, static_cast<size_t>(choice.found), choice.log_total};
    } else if (rules[row].logits != nullptr) {
      found[row].choice = greedy->Choose(rules[row].logits, projection.outputs(), kernels_);
    } else {
      found[row].choice.output = static_cast<int32_t>(choice.output);
      if (rules[row].log_total) found[row].choice.log_probability = choice.logit - choice.log_total;
    }
  }
  return found;
}

}  // namespace ct2triton
