// SPDX-License-Identifier: Apache-2.0
#include "serving/target_counts.h"

#include "triton/guard.h"

namespace ct2triton {

void TargetCounts::Count(const RowReport& report) noexcept {
  if (ids_.empty()) return;
  try {
    const std::string& code = ids_.Of(report.row.source, report.row.prefix);
    const std::string target = code.empty() ? "other" : code;
    const std::lock_guard<std::mutex> lock(mutex_);
    auto known = counts_.find(target);
    if (known == counts_.end()) {
      Counts made{MetricSeries(Metric::kTargetRows, model_, version_, target),
                  MetricSeries(Metric::kTargetTokens, model_, version_, target)};
      known = counts_.emplace(target, std::move(made)).first;
    }
    ++known->second.row_count;
    known->second.token_count += report.result->hypotheses.front().ids.size();
  } catch (...) {
    LogCurrentError();
  }
}

void TargetCounts::Show() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [target, counts] : counts_) {
    counts.rows.MoveTo(counts.row_count);
    counts.tokens.MoveTo(counts.token_count);
  }
}

}  // namespace ct2triton
