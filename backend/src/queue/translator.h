// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/decoding_options.h"
#include "config/engine_options.h"
#include "engine/device.h"
#include "engine/loaded_model.h"
#include "engine/loop/loop_engine.h"
#include "rows/checked_row.h"
#include "rows/row_listener.h"

namespace ct2triton {

class WorkerPool;
struct QueueShare;

// One model with the workers that decode for it: this is where checked rows go.
class Translator {
 public:
  // Loads the model in `directory` (or shares weights and workers that are already there).
  // Throws Error, see LoadedModel.
  Translator(const std::string& directory, const Device& device, const DecodingOptions& defaults,
             const EngineOptions& engine);
  ~Translator();

  // Checks rows, knows their padding.
  const LoadedModel& model() const { return model_; }

  // Accepts the checked rows of one request; blocks while the model's max_queued_rows wait. Each is
  // answered through `listener`, perhaps before Submit returns. Rows with nothing to translate are
  // answered at once, on this thread.
  void Submit(std::vector<CheckedRow> rows, const std::shared_ptr<RowListener>& listener);

  uint64_t BusyTime_ns() const;  // see WorkerPool; shared with models on the same files
  std::vector<LoopCounters> loop_counters() const;  // of each decode loop
  size_t waiting() const;                           // rows of this model that no worker has taken
  // Fails those rows of a listener that still wait.
  void Withdraw(const RowListener& listener, const Error& error) noexcept;

  std::string Description() const;  // one line for the log: model, workers, bounds of a call

 private:
  const LoadedModel model_;
  const std::shared_ptr<WorkerPool> pool_;
  const std::unique_ptr<const QueueShare> share_;
};

}  // namespace ct2triton
