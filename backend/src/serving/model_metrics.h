// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "error.h"
#include "metrics/metric_cells.h"
#include "quality/verdict.h"
#include "queue/translator.h"
#include "rows/row_report.h"
#include "rows/run_report.h"
#include "serving/metrics_clock.h"
#include "serving/target_counts.h"
#include "triton/metric_series.h"

namespace ct2triton {

// The metrics of one loaded version of a model: counts its requests, rows and calls, and reads the
// state of its translators. Its lines at /metrics exist as long as this object. Failures are
// logged.
class ModelMetrics : public Publisher {
 public:
  // `languages` outlive it.
  ModelMetrics(const TargetIds& languages, const std::string& model, uint64_t version) noexcept;
  ~ModelMetrics() override;

  // Publishes this translator's state and its work from now on. Call before its first row.
  void Follow(const std::shared_ptr<const Translator>& translator) noexcept;

  // Null `failure`: success. These functions are thread-safe.
  void CountRequest(const Error* failure, bool superseded) noexcept;
  void Count(const RunReport& report) noexcept;
  void Count(const RowReport& report) noexcept;
  void Count(const Verdict& verdict) noexcept;
  // Counts rows decoded again, and of these, rows whose second answer is returned.
  void CountRetried(size_t rows) noexcept { cells_.Add(Metric::kRetried, rows); }
  void CountRetriedBetter(size_t rows) noexcept { cells_.Add(Metric::kRetriedBetter, rows); }

  void Publish() noexcept override;

 private:
  struct Followed {
    std::shared_ptr<const Translator> translator;
    TranslatorState before;  // when it was first followed, because models share weights
    bool logged = false;     // the reason why its loops stopped was logged
  };

  struct Shown {
    Metric metric;
    size_t value;  // index of the label value
    MetricSeries series;
  };

  void Make(const TargetIds& languages);
  void MakeSeries(const MetricSpec& spec);
  void CountAnswer(const RowReport& report) noexcept;
  void CountTimes(const RowReport& report, size_t tokens) noexcept;
  void Observe(Metric metric, uint64_t from_ns, uint64_t to_ns, uint64_t parts = 1) noexcept;
  void ReadStates() noexcept;
  bool LoopsEnded(Followed* followed) const;

  const std::string model_;
  const uint64_t version_;
  MetricCells cells_;
  std::optional<TargetCounts> targets_;
  std::map<Metric, MetricSeries> times_;  // the histograms
  std::atomic<int64_t> unknown_source_id_{-1};
  std::atomic<int64_t> unknown_id_{-1};

  std::mutex mutex_;  // of all below
  std::vector<Shown> shown_;
  std::optional<MetricSeries> publications_;
  std::vector<Followed> followed_;
  std::shared_ptr<MetricsClock> clock_;
};

}  // namespace ct2triton
