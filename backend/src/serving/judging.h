// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/decoding_options.h"
#include "quality/judge.h"
#include "rows/row.h"
#include "serving/model_metrics.h"
#include "serving/retry_budget.h"

namespace ct2triton {

// Whether scores are means of the tokens' log-probabilities.
bool HasMeanScores(const DecodingOptions& options);

// Judges translations of a model, and counts the verdicts.
struct Judging {
  const Judge* judge = nullptr;  // null: not judged
  ModelMetrics* metrics = nullptr;
  RetryBudget* retries = nullptr;
  bool mean_scores = false;  // scores are means of the tokens' log-probabilities

  // A copy for a request with these options.
  Judging With(const DecodingOptions& options) const {
    if (!Judges(options)) return {};
    return {judge, metrics, retries, HasMeanScores(options)};
  }
  std::optional<double> ScoreOf(const Hypothesis& one) const {
    return mean_scores ? std::optional<double>(one.score) : std::nullopt;
  }
};

// Removes the outputs of verdicts from all outputs of a model, for a request that names no outputs.
void LeaveOutVerdicts(std::vector<std::string>* outputs);

}  // namespace ct2triton
