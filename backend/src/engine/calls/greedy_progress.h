// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "ctranslate2_api.h"
#include "engine/calls/engine.h"

namespace ct2triton {

// The rows of one call of a greedy search, step by step: ends each at its own limit, and tells of
// it where the search allows.
class GreedyProgress {
 public:
  GreedyProgress(const std::vector<const CheckedRow*>& rows, const Weights& weights,
                 CallWatcher* watcher);

  // CTranslate2's step callback: a token of a row; true to end that row.
  bool Step(const ctranslate2::GenerationStepResult& step);

  // The watcher was told that this row has ended.
  bool told(size_t position) const { return told_[position]; }

 private:
  int64_t Id(const ctranslate2::GenerationStepResult& step) const;
  void Tell(size_t position);

  const std::vector<const CheckedRow*>& rows_;
  const ctranslate2::Vocabulary& vocabulary_;
  const VocabularyMap* const map_;  // null: the whole vocabulary
  CallWatcher* const watcher_;
  const bool tells_;
  std::vector<Ids> ids_;
  std::vector<float> scores_;  // sums of the tokens' log probabilities
  std::vector<bool> told_;
};

}  // namespace ct2triton
