// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "config/model_files.h"
#include "rows/row_report.h"
#include "triton/metric_series.h"

namespace ct2triton {

// Answers by target language. The languages are those listed in the prepared model, so their number
// is bounded; other rows count as "other". Without a list there are no such counts.
class TargetCounts {
 public:
  // `ids` outlive it.
  TargetCounts(const TargetIds& ids, const std::string& model, uint64_t version)
      : model_(model), version_(version), ids_(ids) {}

  // Counts an answered row.
  void Count(const RowReport& report) noexcept;
  // Publishes the counts.
  void Show() noexcept;

 private:
  struct Counts {
    MetricSeries rows, tokens;
    uint64_t row_count = 0;
    uint64_t token_count = 0;
  };

  const std::string model_;
  const uint64_t version_;
  const TargetIds& ids_;
  std::mutex mutex_;
  std::map<std::string, Counts> counts_;  // by language, of those requested so far
};

}  // namespace ct2triton
