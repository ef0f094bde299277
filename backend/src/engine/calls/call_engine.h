// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/checked_row.h"
#include "rows/row.h"
#include "rows/run_report.h"

namespace ct2triton {

// The owner of a running call's rows; by itself it takes no notice. Called on the engine's thread.
class CallWatcher {
 public:
  virtual ~CallWatcher() = default;
  // True to end the row at this position of the call; asked between the steps of a search that can
  // end rows alone.
  virtual bool Cancelled(size_t /*position*/) { return false; }
  // The output of the row at this position has grown by an ID that will not change.
  virtual void RowGrew(size_t /*position*/, int64_t /*id*/) {}
  // The row at this position has ended, but others may still run. Only for searches that report
  // rows.
  virtual void RowEnded(size_t /*position*/, RowResult /*result*/) {}
};

// Calls of CTranslate2, one at a time. On a GPU one thread makes, runs and destroys it, in its
// ThreadScope; on a CPU any thread may run it.
class CallEngine {
 public:
  virtual ~CallEngine() = default;

  // Decodes rows that may share a call. No row is empty. Fills the compute times. The results of
  // rows whose end was reported to `watcher` are empty.
  // Rows of different limits need a search that ends rows alone, or may overrun:
  //
  // Such a beam search runs to the largest limit with all its finished hypotheses kept. One of
  // those it finished last is always among them (fewer than the number kept were finished before),
  // so the longest shows the step at which the search ended. Where that is before the row's own
  // limit, the limit would have changed nothing; the other rows run again at their own.
  //
  // Throws Error(kInternal) if CTranslate2 fails; the engine can still be used afterwards.
  virtual std::vector<RowResult> Run(const std::vector<const CheckedRow*>& rows,
                                     CallWatcher* watcher, RunTimes* times) = 0;
};

}  // namespace ct2triton
