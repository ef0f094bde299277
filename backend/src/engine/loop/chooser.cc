// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/chooser.h"

#include <algorithm>

namespace ct2triton {

std::vector<Choice> Chooser::Choose(const std::vector<const GreedySearch*>& searches,
                                    const float* hidden, const Linear& projection) {
  if (const auto* choosing = dynamic_cast<const ChoosingLinear*>(&projection)) {
    return ChooseInProduct(searches, hidden, *choosing);
  }
  const size_t outputs = projection.outputs();
  float* logits = logits_.Room(searches.size() * outputs);
  projection.Apply(hidden, searches.size(), logits, nullptr);
  std::vector<Choice> choices;
  for (const auto* search : searches) {
    choices.push_back(ChooseFrom(*search, logits, outputs));
    logits += outputs;
  }
  return choices;
}

std::vector<Choice> Chooser::ChooseInProduct(const std::vector<const GreedySearch*>& searches,
                                             const float* hidden,
                                             const ChoosingLinear& projection) {
  const size_t outputs = projection.outputs();
  const auto writing = std::count_if(searches.begin(), searches.end(),
                                     [](const auto* search) { return search->ChangesLogits(); });
  float* logits = logits_.Room(static_cast<size_t>(writing) * outputs);
  std::vector<products::ChoiceRules> rules(searches.size());
  for (size_t row = 0; row < searches.size(); ++row) {
    if (searches[row]->ChangesLogits()) {
      rules[row].logits = logits;
      logits += outputs;
    } else {
      rules[row].log_total = searches[row]->rules().scored;
      rules[row].forbidden = searches[row]->Disabled();
    }
  }
  std::vector<products::Choice> found(searches.size());
  projection.Choose(hidden, rules, found.data());
  std::vector<Choice> choices(searches.size());
  for (size_t row = 0; row < searches.size(); ++row) {
    if (rules[row].logits != nullptr) {
      choices[row] = ChooseFrom(*searches[row], rules[row].logits, outputs);
      continue;
    }
    choices[row].output = static_cast<int32_t>(found[row].output);
    if (rules[row].log_total) {
      choices[row].log_probability = found[row].logit - found[row].log_total;
    }
  }
  return choices;
}

Choice Chooser::ChooseFrom(const GreedySearch& search, float* logits, size_t outputs) const {
  return search.Choose(logits, outputs, model_.kernels(), model_.log_softmax());
}

}  // namespace ct2triton
