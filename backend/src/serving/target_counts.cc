// SPDX-License-Identifier: Apache-2.0
#include "serving/target_counts.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "triton/guard.h"

namespace ct2triton {
namespace {

const std::string kOther = "other";

TargetIds ReadTargetIds(const std::filesystem::path& tokenizer_folder) {
  std::ifstream file(tokenizer_folder / "languages.json");
  if (!file) return {};
  return ParseTargetIds(std::string{std::istreambuf_iterator<char>(file), {}});
}

}  // namespace

TargetCounts::TargetCounts(const std::filesystem::path& tokenizer_folder, const std::string& model,
                           uint64_t version)
    : model_(model), version_(version), ids_(ReadTargetIds(tokenizer_folder)) {}

const std::string& TargetCounts::TargetOf(const CheckedRow& row) const {
  if (!row.prefix.empty()) {
    const auto known = ids_.in_prefix.find(row.prefix.front());
    if (known != ids_.in_prefix.end()) return known->second;
  }
  // Behind the id of the source's language, where there is one.
  const size_t places = ids_.in_source.empty() ? 0 : std::min<size_t>(2, row.source.size());
  for (size_t i = 0; i < places; ++i) {
    const auto known = ids_.in_source.find(row.source[i]);
    if (known != ids_.in_source.end()) return known->second;
  }
  return ids_.only.empty() ? kOther : ids_.only;
}

void TargetCounts::Count(const RowReport& report) noexcept {
  if (ids_.only.empty() && ids_.in_prefix.empty() && ids_.in_source.empty()) return;
  try {
    const std::string& target = TargetOf(report.row);
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
