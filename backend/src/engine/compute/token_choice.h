// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/compute/cpu/row_kernel.h"
#include "engine/compute/sampler.h"
#include "engine/compute/top_candidates.h"
#include "engine/model/vocabulary_map.h"

namespace ct2triton {

// Tokens as outputs of the projection: a vocabulary ID, or an index among the candidates of a
// vocabulary map.
using Outputs = std::vector<int32_t>;

// A draw by `sampler` for the token of a step.
struct Draw {
  Sampler sampler;
  size_t step;
  size_t sequences = 0;  // above 0: one draw for each instead, by Sampler::OfSequence
};

// How the token that follows an output of a step is chosen, in plain values that a device can use.
// The order is: penalty, forbidden outputs, log-softmax, draw or best, bias.
struct OutputRules {
  const VocabularyMap* map = nullptr;  // its candidates are the outputs; null: the vocabulary
  std::vector<int64_t> forbidden;      // ascending, distinct
  float penalty = 1;                   // applied once to each distinct output of `before`
  const Outputs* before = nullptr;     // the sequence so far, with forced outputs
  const Outputs* ends = nullptr;       // outputs that end the sequence
  size_t min_length = 0;               // `ends` are forbidden until `before` has this length
  bool scored = false;                 // return the log-probability of the choice
  std::optional<Draw> draw;            // none: the best output, the first of equal ones
  std::optional<int32_t> favored;      // an output whose probability `bias` raises
  float bias = 0;
  bool as_library = false;  // compute the bias exactly as CTranslate2 does

  // For a search with several sequences: return candidates of all of them instead of a choice. The
  // rules of the first sequence hold the draw.
  size_t candidates = 0;  // their number; 0: choose per sequence
  size_t sequences = 0;   // sequences of the search; 0 except in the first
  size_t copies = 0;      // copies of the first sequence, which rank last
  float score = 0;        // score of the sequence so far
  bool of_best = false;   // the best outputs suffice, unless they are too close

  // How many of the best outputs suffice; 0: all are needed.
  size_t Best() const { return of_best ? OutputsToTell(candidates) : 0; }
  // Whether the choice needs more than the order of the logits and their sum.
  bool ChangesLogits() const { return penalty != 1 || draw || favored; }
};

// The next token of a row.
struct Choice {
  int32_t output = 0;
  float log_probability = 0;  // 0 unless scores are asked for
};

// Result of a step for one output.
struct Found {
  Choice choice;
  // Candidates of its row, in the first of several sequences: best first, or in the order drawn; or
  // one draw for each sequence.
  std::vector<Candidate> candidates = {};
  bool written = false;  // its logits were written in memory
  bool later = false;    // the step still runs: the row gets its result at the next step
};

// CTranslate2's score of a sequence that must not be chosen.
constexpr float kPushedBack = -1e10F;

// For devices: applies the rules of one output to its logits, [outputs], which it changes.
Found ChooseFrom(const OutputRules& rules, float* logits, size_t outputs, const RowKernel& kernel);

// A device's data of an output: its logits, or the best outputs.
struct OfferedOutput {
  float* logits = nullptr;
  BestOutputs best = {};
};

// The candidates of several sequences, by the rules of each. None: the best outputs do not
// determine them.
std::optional<std::vector<Candidate>> ChooseJointly(const OutputRules* rules,
                                                    const OfferedOutput* offered, size_t outputs,
                                                    const RowKernel& kernel);

}  // namespace ct2triton
