// SPDX-License-Identifier: Apache-2.0
#include "engine/calls/greedy_progress.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "engine/finish.h"
#include "engine/search.h"

namespace ct2triton {

GreedyProgress::GreedyProgress(const std::vector<const CheckedRow*>& rows, const Weights& weights,
                               CallWatcher* watcher)
    : rows_(rows),
      vocabulary_(weights.target()),
      map_(rows.front()->search->UsesMap() ? &*weights.vocabulary_map() : nullptr),
      watcher_(watcher),
      tells_(rows.front()->search->TellsRows()),
      ids_(rows.size()),
      scores_(rows.size(), 0),
      told_(rows.size(), false) {}

bool GreedyProgress::Step(const ctranslate2::GenerationStepResult& step) {
  const size_t position = step.batch_id;
  if (watcher_->Abandoned(position)) return true;
  const bool at_limit = static_cast<int64_t>(step.step) + 1 >= rows_[position]->limit_tokens;
  if (tells_) {
    ids_[position].push_back(Id(step));
    scores_[position] += step.score.value_or(0);
    if (step.is_last || at_limit) Tell(position);
  }
  return at_limit;
}

int64_t GreedyProgress::Id(const ctranslate2::GenerationStepResult& step) const {
  if (map_ != nullptr) return map_->Id(step.token_id);
  // By name, as all answers are: of a token that stands twice, the first id.
  return static_cast<int64_t>(vocabulary_.to_id(step.token));
}

void GreedyProgress::Tell(size_t position) {
  const CheckedRow& row = *rows_[position];
  // As CTranslate2 does it: the end token counts.
  const auto length = static_cast<float>(ids_[position].size());
  const auto penalty = static_cast<float>(row.search->options().length_penalty);
  RowResult result;
  result.hypotheses.push_back(FinishHypothesis(row, std::move(ids_[position])));
  result.hypotheses.back().score = scores_[position] / std::pow(length, penalty);
  told_[position] = true;
  watcher_->RowEnded(position, std::move(result));
}

}  // namespace ct2triton
