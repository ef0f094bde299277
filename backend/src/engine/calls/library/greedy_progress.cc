// SPDX-License-Identifier: Apache-2.0
#include "engine/calls/library/greedy_progress.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "engine/search/finish.h"
#include "engine/search/search_options.h"

namespace ct2triton {

GreedyProgress::GreedyProgress(const std::vector<const CheckedRow*>& rows,
                               const ctranslate2::Vocabulary& vocabulary, CallWatcher* watcher)
    : rows_(rows),
      vocabulary_(vocabulary),
      map_(rows.front()->search->UsesLibraryMap() ? rows.front()->search->map() : nullptr),
      watcher_(watcher),
      reports_(rows.front()->search->ReportsRows()),
      ids_(rows.size()),
      scores_(rows.size(), 0),
      grown_(rows.size(), 0),
      reported_(rows.size(), false) {}

bool GreedyProgress::Step(const ctranslate2::GenerationStepResult& step) {
  const size_t position = step.batch_id;
  if (watcher_->Cancelled(position)) return true;
  const bool at_limit = static_cast<int64_t>(step.step) + 1 >= rows_[position]->limit_tokens;
  if (reports_) {
    Grow(position, Id(step));
    scores_[position] += step.score.value_or(0);
    if (step.is_last || at_limit) Report(position);
  }
  return at_limit;
}

int64_t GreedyProgress::Id(const ctranslate2::GenerationStepResult& step) const {
  if (map_ != nullptr) return map_->Id(step.token_id);
  // By name, like all outputs: the first ID of a token that occurs twice.
  return static_cast<int64_t>(vocabulary_.to_id(step.token));
}

// End tokens at the end of an output are removed, so one is reported only when another token
// follows.
void GreedyProgress::Grow(size_t position, int64_t id) {
  const SearchOptions& search = *rows_[position]->search;
  Ids& ids = ids_[position];
  ids.push_back(id);
  if (search.IsEnd(id) && !search.options().return_end_token) return;
  for (size_t& grown = grown_[position]; grown < ids.size(); ++grown) {
    watcher_->RowGrew(position, ids[grown]);
  }
}

void GreedyProgress::Report(size_t position) {
  const CheckedRow& row = *rows_[position];
  // As in CTranslate2, the end token counts.
  const auto length = static_cast<float>(ids_[position].size());
  const auto penalty = static_cast<float>(row.search->options().length_penalty);
  RowResult result;
  result.steps = static_cast<int64_t>(ids_[position].size());
  result.hypotheses.push_back(FinishHypothesis(row, std::move(ids_[position])));
  result.hypotheses.back().score = scores_[position] / std::pow(length, penalty);
  reported_[position] = true;
  watcher_->RowEnded(position, std::move(result));
}

}  // namespace ct2triton
