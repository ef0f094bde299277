// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/chooser.h"

#include <algorithm>

namespace ct2triton {
namespace {

bool WantsLogits(const GreedySearch* search) {
  return search == nullptr || search->ChangesLogits();
}

}  // namespace

std::vector<Found> Chooser::Choose(const std::vector<const GreedySearch*>& searches,
                                   const float* hidden, const Linear& projection) {
  if (const auto* choosing = dynamic_cast<const ChoosingLinear*>(&projection)) {
    return ChooseInProduct(searches, hidden, *choosing);
  }
  const size_t outputs = projection.outputs();
  float* logits = logits_.Room(searches.size() * outputs);
  projection.Apply(hidden, searches.size(), logits, nullptr);
  std::vector<Found> found;
  for (const auto* search : searches) {
    found.push_back(FoundIn(search, logits, outputs));
    logits += outputs;
  }
  return found;
}

std::vector<Found> Chooser::ChooseInProduct(const std::vector<const GreedySearch*>& searches,
                                            const float* hidden, const ChoosingLinear& projection) {
  const size_t outputs = projection.outputs();
  const auto writing = std::count_if(searches.begin(), searches.end(), &WantsLogits);
  float* logits = logits_.Room(static_cast<size_t>(writing) * outputs);
  std::vector<products::ChoiceRules> rules(searches.size());
  for (size_t row = 0; row < searches.size(); ++row) {
    if (WantsLogits(searches[row])) {
      rules[row].logits = logits;
      logits += outputs;
    } else {
      rules[row].log_total = searches[row]->rules().scored();
      rules[row].forbidden = searches[row]->Disabled();
    }
  }
  std::vector<products::Choice> chosen(searches.size());
  projection.Choose(hidden, rules, chosen.data());
  std::vector<Found> found(searches.size());
  for (size_t row = 0; row < searches.size(); ++row) {
    if (rules[row].logits != nullptr) {
      found[row] = FoundIn(searches[row], rules[row].logits, outputs);
      continue;
    }
    Choice& choice = found[row].choice;
    choice.output = static_cast<int32_t>(chosen[row].output);
    if (rules[row].log_total) {
      choice.log_probability = chosen[row].logit - chosen[row].log_total;
    }
  }
  return found;
}

Found Chooser::FoundIn(const GreedySearch* search, float* logits, size_t outputs) const {
  if (search == nullptr) return {{}, logits};
  return {search->Choose(logits, outputs, model_.kernels(), model_.log_softmax()), nullptr};
}

}  // namespace ct2triton
