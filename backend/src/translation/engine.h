// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "translation/checked_row.h"
#include "translation/row_listener.h"
#include "translation/search.h"
#include "translation/weights.h"

namespace ct2triton {

// One CTranslate2 replica: runs calls on the thread that made it, and must end there.
class Engine {
 public:
  explicit Engine(std::shared_ptr<const Weights> weights);

  // True to give up the row at this position of the call; asked between the steps of a search that
  // can end rows alone.
  using Abandoned = std::function<bool(size_t position)>;

  // Translates rows of the same search in one call of CTranslate2; rows whose search cannot end
  // rows alone have equal limits. No row is empty. Fills the compute times.
  // Throws Error(kInternal) if CTranslate2 fails; the engine works on afterwards.
  std::vector<RowResult> Translate(const std::vector<const CheckedRow*>& rows,
                                   const Abandoned& abandoned, CallTimes* times);

 private:
  RowResult ToRowResult(const CheckedRow& row, ctranslate2::TranslationResult result) const;

  const std::shared_ptr<const Weights> weights_;
  const std::unique_ptr<ctranslate2::models::SequenceToSequenceReplica> replica_;
};

// The answer to a row with nothing to translate: its prefix echoed, as CTranslate2 does.
RowResult EchoPrefix(const CheckedRow& row, const Weights& weights);

// Nanoseconds of the steady clock, the clock of Triton's statistics.
uint64_t SteadyNow_ns();

}  // namespace ct2triton
