// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/calls/call_library.h"
#include "engine/model/weights.h"
#include "rows/checked_row.h"

namespace ct2triton {

// A row of a trial, and CTranslate2's result for it.
struct TrialRow {
  CheckedRow row;
  size_t joins_at = 0;            // step at which it joins the loop
  std::vector<int32_t> forced{};  // the start token first
  GreedyTruth truth{};
};

// A search of two beams.
struct BeamTrialRow {
  CheckedRow row;
  std::vector<float> scores;  // of both hypotheses
};

// CTranslate2's part of a trial.
struct TrialTruth {
  std::vector<TrialRow> rows;
  std::optional<BeamTrialRow> beams;  // none: loops run no such rows here
  uint64_t ns = 0;                    // time that CTranslate2 took
};

// Computes the rows of a trial of this model with CTranslate2, before its weights are packed. Costs
// one call of 3 rows and 5 steps, and one of a row with two beams. Throws Error(kUnsupported) if
// CTranslate2 fails.
TrialTruth AskCTranslate2(const Weights& weights);

// Computes the same tokens with float32 weights, which costs the same time again and the memory of
// such a model. Throws Error(kUnsupported) if CTranslate2 fails.
TrialTruth AskAtFloat32(const Weights& weights, const TrialTruth& truth);

// Throws the Error(kUnsupported) of a trial that failed.
[[noreturn]] void RefuseTrial(const std::string& what);

}  // namespace ct2triton
