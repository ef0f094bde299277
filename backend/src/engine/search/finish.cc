// SPDX-License-Identifier: Apache-2.0
#include "engine/search/finish.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "engine/model/weights.h"
#include "engine/search/search_options.h"

namespace ct2triton {
namespace {

FinishReason TakeEnd(const CheckedRow& row, EndToken end, Ids* ids) {
  const SearchOptions& search = *row.search;
  if (end == EndToken::kTakenOff) {
    const auto length = static_cast<int64_t>(ids->size());
    return length < row.limit_tokens ? FinishReason::kStop : FinishReason::kLength;
  }
  if (ids->empty() || !search.IsEnd(ids->back())) return FinishReason::kLength;
  if (!search.options().return_end_token) {
    while (!ids->empty() && search.IsEnd(ids->back())) ids->pop_back();
  }
  return FinishReason::kStop;
}

size_t ForcedIds(const CheckedRow& row) {
  if (row.search->Biased()) return 0;
  return row.prefix.size() - (row.search->NeedsPrefix() && !row.prefix.empty() ? 1 : 0);
}

}  // namespace

Hypothesis FinishHypothesis(const CheckedRow& row, Ids ids, EndToken end) {
  Hypothesis hypothesis;
  hypothesis.finish = TakeEnd(row, end, &ids);
  if (row.cut) hypothesis.finish = FinishReason::kCut;
  hypothesis.ids = std::move(ids);
  return hypothesis;
}

void AddAlignments(const CheckedRow& row, const Ids& positions, Hypothesis* hypothesis) {
  const bool wanted = row.search->options().return_alignments ||
                      (Judges(row.search->options()) && !positions.empty());
  if (!wanted) return;
  const size_t size = hypothesis->ids.size();
  const size_t forced = std::min(ForcedIds(row), size);
  Ids& alignments = hypothesis->alignments;
  alignments.assign(forced, -1);
  for (size_t i = forced; i < std::min(size, positions.size()); ++i) {
    alignments.push_back(positions[i]);
  }
  alignments.resize(size, -1);
}

bool IsUnknown(int64_t id, const Weights& weights) {
  return id == weights.target().to_id(weights.files().unk_token);
}

int64_t IdOfSource(const CheckedRow& row, int64_t position, const Weights& weights) {
  const int64_t id = row.source[static_cast<size_t>(position)];
  return weights.target().to_id(weights.source().to_token(id));
}

RowResult EchoPrefix(const CheckedRow& row) {
  Hypothesis hypothesis;
  hypothesis.finish = FinishReason::kEmpty;
  const bool drop_start = row.search->NeedsPrefix() && !row.prefix.empty();
  hypothesis.ids.assign(row.prefix.begin() + (drop_start ? 1 : 0), row.prefix.end());
  const auto limit = static_cast<size_t>(row.limit_tokens);
  if (hypothesis.ids.size() > limit) hypothesis.ids.resize(limit);
  AddAlignments(row, {}, &hypothesis);
  RowResult result;
  result.hypotheses.assign(static_cast<size_t>(row.search->options().num_hypotheses), hypothesis);
  return result;
}

}  // namespace ct2triton
