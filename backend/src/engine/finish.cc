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

}  // namespace ct2triton
