// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/compute/cpu/kernels.h"
#include "engine/model/vocabulary_map.h"
#include "engine/search/sampler.h"
#include "engine/search/top_candidates.h"

namespace ct2triton {

// Tokens as outputs of the projection: by vocabulary id, or by place among the candidates of a
// vocabulary map.
using Outputs = std::vector<int32_t>;

// A draw by this sampler, as the token of this step.
struct Draw {
  Sampler sampler;
  size_t step;
};

// How the token that follows an output of a step is chosen, by plain values: what a device needs to
// know. The order is: penalty, forbidden outputs, log-softmax, draw or best, bias.
struct OutputRules {
  const VocabularyMap* map = nullptr;  // whose candidates are the outputs; null: the vocabulary
  std::vector<int64_t> forbidden;      // ascending, each once
  float penalty = 1;                   // once for each distinct output of `before`
  const Outputs* before = nullptr;     // of the sequence, forced ones among them
  const Outputs* ends = nullptr;       // which end the sequence,
  size_t min_length = 0;               // and which `forbidden` has until `before` is so long
  bool scored = false;                 // the log-probability of the choice is wanted
  std::optional<Draw> draw;            // none: the best one, the first of equals
  std::optional<int32_t> leaning;      // an output that gets `bias` of the probability
  float bias = 0;
  size_t best = 0;      // so many of the best outputs are wanted instead of a choice
  bool logits = false;  // or the logits as they are: the search does the rest

  // The choice takes more than the order of the logits and their sum.
  bool ChangesLogits() const { return penalty != 1 || draw || leaning; }
};

inline OutputRules LogitsOf(const VocabularyMap* map) {
  OutputRules rules;
  rules.map = map;
  rules.logits = true;
  return rules;
}

// The next token of a row.
struct Choice {
  int32_t output = 0;
  float log_probability = 0;  // 0 unless scores are asked for
};

// What a step gives an output. Memory: the device's, until the next step.
struct Found {
  Choice choice;
  bool later = false;       // the step still runs: the same row asked for again gets it
  float* logits = nullptr;  // [outputs], where they were asked for, or the best ones cannot be told
  BestOutputs best = {};
};

// What becomes of a log-probability under a bias: of the output that it leans to, and of others.
float LeantTo(float log_probability, float bias);
float LeantFrom(float log_probability, float bias);

// Makes of logits, [outputs], what is chosen from; and chooses.
void ApplyRules(const OutputRules& rules, float* logits, size_t outputs, const Kernels& kernels);
Choice PickToken(const OutputRules& rules, const float* scores, size_t outputs,
                 const Kernels& kernels);

// Puts the penalty on the logits of the outputs in `before`, once for each distinct one.
void Penalize(const Outputs& before, float penalty, float* logits);

}  // namespace ct2triton
