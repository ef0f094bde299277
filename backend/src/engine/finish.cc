// SPDX-License-Identifier: Apache-2.0
#include "engine/finish.h"

#include <cstdint>
#include <utility>

#include "engine/search.h"

namespace ct2triton {
namespace {

FinishReason TakeEnd(const CheckedRow& row, Ids* ids) {
  const Search& search = *row.search;
  const DecodingOptions& options = search.options();
  if (options.replace_unknowns && !options.return_end_token) {  // it is off already
    const auto length = static_cast<int64_t>(ids->size());
    return length < row.limit_tokens ? FinishReason::kStop : FinishReason::kLength;
  }
  if (ids->empty() || !search.IsEnd(ids->back())) return FinishReason::kLength;
  if (!options.return_end_token) {
    while (!ids->empty() && search.IsEnd(ids->back())) ids->pop_back();
  }
  return FinishReason::kStop;
}

}  // namespace

Hypothesis FinishHypothesis(const CheckedRow& row, Ids ids) {
  Hypothesis hypothesis;
  hypothesis.finish = TakeEnd(row, &ids);
  if (row.cut) hypothesis.finish = FinishReason::kCut;
  hypothesis.ids = std::move(ids);
  return hypothesis;
}

RowResult EchoPrefix(const CheckedRow& row) {
  Hypothesis hypothesis;
  hypothesis.finish = FinishReason::kEmpty;
  const bool drop_start = row.search->NeedsPrefix() && !row.prefix.empty();
  hypothesis.ids.assign(row.prefix.begin() + (drop_start ? 1 : 0), row.prefix.end());
  const auto limit = static_cast<size_t>(row.limit_tokens);
  if (hypothesis.ids.size() > limit) hypothesis.ids.resize(limit);
  RowResult result;
  result.hypotheses.assign(static_cast<size_t>(row.search->options().num_hypotheses), hypothesis);
  return result;
}

}  // namespace ct2triton
