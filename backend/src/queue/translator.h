// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/decoding_options.h"
#include "config/engine_options.h"
#include "engine/device.h"
#include "engine/loaded_model.h"
#include "engine/loop/loop_engine.h"
#include "rows/checked_row.h"
#include "rows/row_listener.h"

namespace ct2triton {

class ModelWork;
struct QueueShare;

// The state and the totals of one model. Models on the same files share all but their rows.
struct TranslatorState {
  size_t waiting_rows = 0;
  size_t most_waiting_rows = 0;  // at which the queue is full
  size_t decoding_rows = 0;
  uint64_t busy_ns = 0;         // of the machine's decoding threads; 0 on a GPU
  size_t decoding_threads = 0;  // of the machine; 0 on a GPU
  size_t cache_bytes = 0;       // of keys, values and logits in decode loops
  size_t gpu_cache_bytes = 0;   // of pages on a GPU
  LoopCounters loops;           // their sum
  uint64_t call_loads = 0;      // of CTranslate2's own model, for calls

  // Adds the state of another one on the same machine.
  TranslatorState& operator+=(const TranslatorState& other);
  // The same state, with what was done since.
  TranslatorState Since(const TranslatorState& before) const;
};

// One model and the threads that decode for it: this is where checked rows go.
class Translator {
 public:
  // Loads the model in `directory` (or shares weights and threads that are already there).
  // Throws Error, see LoadedModel.
  Translator(const std::string& directory, const Device& device, const DecodingOptions& defaults,
             const EngineOptions& engine);
  ~Translator();

  // Checks rows, knows their padding.
  const LoadedModel& model() const { return model_; }

  // Accepts the checked rows of one request; blocks while the model's max_queued_rows wait. Threads
  // may call it at once; `listener` may not call it. Each row is answered through `listener`,
  // perhaps before Submit returns. Rows with nothing to translate are answered at once, on this
  // thread.
  void Submit(std::vector<CheckedRow> rows, const std::shared_ptr<RowListener>& listener);
  // The same for rows of a request from this position on, without blocking. `queued_ns`: since when
  // they wait.
  void SubmitFrom(size_t first_position, std::vector<CheckedRow> rows,
                  const std::shared_ptr<RowListener>& listener, uint64_t queued_ns);

  uint64_t BusyTime_ns() const;  // see ModelWork; shared with models on the same files
  std::vector<LoopCounters> loop_counters() const;  // of each decode loop
  std::string loop_failure() const;                 // see ModelWork
  std::optional<Error> loss() const;                // see ModelWork
  TranslatorState state() const;
  size_t waiting() const;       // rows of this model that no worker has taken
  size_t most_waiting() const;  // max_queued_rows
  // Waits for some time until fewer than `most` rows wait, or until WakeWaiting was called since
  // wakes() gave `seen`. Where they do not become fewer, drops cancelled ones.
  void WaitForPlaces(size_t most, uint64_t seen);
  uint64_t wakes() const;
  void WakeWaiting() noexcept;
  // Fails those rows of a listener that still wait.
  void Withdraw(const RowListener& listener, const Error& error) noexcept;

  std::string Description() const;  // one line for the log: model, workers, bounds of a call

 private:
  const LoadedModel model_;
  const std::shared_ptr<ModelWork> work_;
  const std::unique_ptr<const QueueShare> share_;
  std::mutex submit_mutex_;  // no other thread fills the places that Submit has found
};

}  // namespace ct2triton
