// SPDX-License-Identifier: Apache-2.0
#include "translation/greedy_progress.h"

#include <cstdint>
#include <utility>

#include "translation/finish.h"
#include "translation/search.h"

namespace ct2triton {

GreedyProgress::GreedyProgress(const std::vector<const CheckedRow*>& rows, const Weights& weights,
                               CallWatcher* watcher)
    : rows_(rows),
      vocabulary_(weights.target()),
      map_(rows.front()->search->UsesMap() ? &*weights.vocabulary_map() : nullptr),
      watcher_(watcher),
      tells_(rows.front()->search->TellsRows()),
      ids_(rows.size()),
      told_(rows.size(), false) {}

bool GreedyProgress::Step(const ctranslate2::GenerationStepResult& step) {
  const size_t position = step.batch_id;
  if (watcher_->Abandoned(position)) return true;
  const bool at_limit = static_cast<int64_t>(step.step) + 1 >= rows_[position]->limit_tokens;
  if (tells_) {
    ids_[position].push_back(Id(step));
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
  RowResult result;
  result.hypotheses.push_back(FinishHypothesis(*rows_[position], std::move(ids_[position])));
  told_[position] = true;
  watcher_->RowEnded(position, std::move(result));
}

}  // namespace ct2triton
