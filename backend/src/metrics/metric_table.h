// SPDX-License-Identifier: Apache-2.0
//
// The metrics of a model, in one table: the source of Triton's /metrics, docs/metrics.md and the
// dashboard.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ct2triton {

enum class Metric : size_t {
  kRequests,
  kRows,
  kRowsRun,
  kEqualRows,
  kMapRows,
  kSourceTokens,
  kGeneratedTokens,
  kUnknownSourceTokens,
  kUnknownGeneratedTokens,
  kTargetRows,
  kTargetTokens,
  kJudged,
  kFlagged,
  kRetried,
  kRetriedBetter,
  kQueueSeconds,
  kFirstTokenSeconds,
  kTokenSeconds,
  kTokenGapSeconds,
  kCalls,
  kCallSteps,
  kPaddingTokens,
  kCallLoads,
  kLoopSteps,
  kLoopStepRows,
  kLoopStepTokens,
  kLoopStepSeconds,
  kLoopDraftTokens,
  kLoopDraftTokensKept,
  kLoopJoinedRows,
  kLoopHelpedParts,
  kGpuPasses,
  kGpuPassesAhead,
  kGpuHostChoices,
  kEncodes,
  kEncodedRows,
  kEncodedTokens,
  kEncodeSeconds,
  kSharedEncodings,
  kBusySeconds,
  kDecodingThreads,
  kWaitingRows,
  kMostWaitingRows,
  kDecodingRows,
  kDecodesInLoop,
  kLoopRefused,
  kGpuLost,
  kWeightBytes,
  kCacheBytes,
  kGpuCacheBytes,
  kPublications,
};

enum class MetricKind { kCounter, kGauge, kHistogram };

// "counter", "gauge", "histogram".
const char* MetricKindName(MetricKind kind);

struct MetricSpec {
  Metric id;
  const char* name;  // includes the unit, and _total for a counter
  MetricKind kind;
  // Unit in dashboards: "rows", "tokens", "seconds", "bytes", ...
  const char* unit;
  const char* help;
  // A label besides model and version; null: none. Its values are these, or else the model's own.
  const char* label = nullptr;
  std::vector<const char*> label_values = {};

  bool open_label() const { return label != nullptr && label_values.empty(); }
  // Number of series of a model that exist from its load on.
  size_t fixed_series() const;
  // Factor from the count to the unit: seconds are counted in nanoseconds.
  double scale() const;
};

// All metrics, in the order of their ids.
const std::vector<MetricSpec>& MetricTable();
const MetricSpec& SpecOf(Metric metric);

// Upper bounds of the buckets of every histogram, in seconds.
const std::vector<double>& HistogramBounds_s();

}  // namespace ct2triton
