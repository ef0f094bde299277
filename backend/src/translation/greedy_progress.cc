// SPDX-License-Identifier: Apache-2.0
#include "translation/greedy_progress.h"

#include <cstdint>
#include <utility>

#include "translation/finish.h"
#include "translation/search.h"

namespace ct2triton {

GreedyProgress::GreedyProgress(const std::vector<const CheckedRow*>& rows,
                               const ctranslate2::Vocabulary& vocabulary, CallWatcher* watcher)
    : rows_(rows),
      vocabulary_(vocabulary),
      watcher_(watcher),
      tells_(rows.front()->search->TellsRows()),
      ids_(rows.size()),
      told_(rows.size(), false) {}

bool GreedyProgress::Step(const ctranslate2::GenerationStepResult& step) {
  const size_t position = step.batch_id;
  if (watcher_->Abandoned(position)) return true;
  const bool at_limit = static_cast<int64_t>(step.step) + 1 >= rows_[position]->limit_tokens;
  if (tells_) {
    // By name, as all answers are: of a token that stands twice, the first id.
    ids_[position].push_back(static_cast<int64_t>(vocabulary_.to_id(step.token)));
    if (step.is_last || at_limit) Tell(position);
  }
  return at_limit;
}

void GreedyProgress::Tell(size_t position) {
  RowResult result;
  result.hypotheses.push_back(FinishHypothesis(*rows_[position], std::move(ids_[position])));
  told_[position] = true;
  watcher_->RowEnded(position, std::move(result));
}

}  // namespace ct2triton
