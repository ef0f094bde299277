// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "ctranslate2_api.h"
#include "engine/calls/call_engine.h"
#include "engine/model/vocabulary_map.h"

namespace ct2triton {

// The rows of one call of a greedy search, step by step: ends each at its own limit, and reports
// its tokens if the search allows.
class GreedyProgress {
 public:
  GreedyProgress(const std::vector<const CheckedRow*>& rows,
                 const ctranslate2::Vocabulary& vocabulary, CallWatcher* watcher);

  // CTranslate2's step callback: a token of a row. Returns true to end that row.
  bool Step(const ctranslate2::GenerationStepResult& step);

  // Whether the end of this row was reported to the watcher.
  bool reported(size_t position) const { return reported_[position]; }

 private:
  int64_t Id(const ctranslate2::GenerationStepResult& step) const;
  void Grow(size_t position, int64_t id);
  void Report(size_t position);

  const std::vector<const CheckedRow*>& rows_;
  const ctranslate2::Vocabulary& vocabulary_;
  const VocabularyMap* const map_;  // null: the whole vocabulary
  CallWatcher* const watcher_;
  const bool reports_;
  std::vector<Ids> ids_;
  std::vector<float> scores_;  // sums of the tokens' log probabilities
  std::vector<size_t> grown_;  // IDs reported so far
  std::vector<bool> reported_;
};

}  // namespace ct2triton
