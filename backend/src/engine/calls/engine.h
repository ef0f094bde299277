// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/search.h"
#include "engine/weights.h"
#include "rows/checked_row.h"
#include "rows/row_listener.h"

namespace ct2triton {

// What the owner of a call's rows knows and hears while it runs; on the engine's thread.
class CallWatcher {
 public:
  virtual ~CallWatcher() = default;
  // True to give up the row at this position of the call; asked between the steps of a search that
  // can end rows alone.
  virtual bool Abandoned(size_t position) const = 0;
  // The row at this position has ended, others may not have: told of the searches that tell.
  virtual void RowEnded(size_t position, RowResult result) = 0;
};

// CTranslate2 replicas of one thread: runs calls on the thread that made it, and must end there.
class Engine {
 public:
  explicit Engine(std::shared_ptr<const Weights> weights);

  // Translates rows of the same search in one call of CTranslate2. No row is empty. Fills the
  // compute times. The results of rows of which `watcher` was told that they ended are empty.
  // Rows of different limits need a search that ends rows alone, or may overrun:
  //
  // Such a beam search runs to the largest limit with all its finished hypotheses kept. One of
  // those it finished last is always among them (fewer than the number kept were finished before),
  // so the longest tells the step at which the search ended. Where that is before the row's own
  // limit, the limit would have changed nothing; the other rows run again at their own.
  //
  // Throws Error(kInternal) if CTranslate2 fails; the engine works on afterwards.
  std::vector<RowResult> Translate(const std::vector<const CheckedRow*>& rows, CallWatcher* watcher,
                                   CallTimes* times);

 private:
  using Rows = std::vector<const CheckedRow*>;
  using Results = std::vector<ctranslate2::TranslationResult>;

  ctranslate2::models::SequenceToSequenceReplica& ReplicaFor(const Search& search);
  Results Call(const Rows& rows, const ctranslate2::TranslationOptions& options);
  Results CallBeyondLimits(const Rows& rows, int64_t largest_limit,
                           std::vector<bool>* reached_limit);
  RowResult ToRowResult(const CheckedRow& row, ctranslate2::TranslationResult result) const;

  const std::shared_ptr<const Weights> weights_;
  const std::unique_ptr<ctranslate2::models::SequenceToSequenceReplica> replica_;
  // For the vocabulary map, made at its first use. CTranslate2 4.8.5 mixes up tokens when one
  // replica is used with several sets of candidates: it keeps the numbering of the first one
  // (src/layers/decoder.cc, Decoder::update_output_layer).
  std::unique_ptr<ctranslate2::models::SequenceToSequenceReplica> mapped_replica_;
};

// The answer to a row with nothing to translate: its prefix echoed, as CTranslate2 does.
RowResult EchoPrefix(const CheckedRow& row, const Weights& weights);

}  // namespace ct2triton
