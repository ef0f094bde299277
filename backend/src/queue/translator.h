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

// The state and the totals of one model. Models on the same files share all of it except their
// rows.
struct TranslatorState {
  size_t waiting_rows = 0;
  size_t most_waiting_rows = 0;  // at which the queue is full
  size_t decoding_rows = 0;
  uint64_t busy_ns = 0;         // of the machine's decoding threads; 0 on a GPU
  size_t decoding_threads = 0;  // of the machine; 0 on a GPU
  size_t cache_bytes = 0;       // of keys, values and logits in decode loops
  size_t gpu_cache_bytes = 0;   // of pages on a GPU
  LoopCounters loops;           // their sum
  uint64_t call_loads = 0;      // how often CTranslate2's own model was loaded for calls

  // Adds the state of another model on the same machine.
  TranslatorState& operator+=(const TranslatorState& other);
  // The same state, with totals counted since `before`.
  TranslatorState Since(const TranslatorState& before) const;
};

// One model and the threads that decode for it. Accepts checked rows.
class Translator {
 public:
  // Loads the model in `directory` (or shares weights and threads that exist already). Throws
  // Error, see LoadedModel.
  Translator(const std::string& directory, const Device& device, const DecodingOptions& defaults,
             const EngineOptions& engine);
  ~Translator();

  // Checks rows and computes their padding.
  const LoadedModel& model() const { return model_; }

  // Accepts the checked rows of one request; blocks while the model's max_queued_rows wait.
  // Thread-safe; `listener` may not call it. Each row is answered through `listener`, possibly
  // before Submit returns. Empty rows are answered at once, on this thread.
  void Submit(std::vector<CheckedRow> rows, const std::shared_ptr<RowListener>& listener);
  // Like Submit for the rows of a request from this position on, but without blocking. `queued_ns`:
  // since when they wait.
  void SubmitFrom(size_t first_position, std::vector<CheckedRow> rows,
                  const std::shared_ptr<RowListener>& listener, uint64_t queued_ns);

  uint64_t BusyTime_ns() const;  // see ModelWork; shared with models on the same files
  std::vector<LoopCounters> loop_counters() const;  // of each decode loop
  std::string loop_failure() const;                 // see ModelWork
  std::optional<Error> loss() const;                // see ModelWork
  TranslatorState state() const;
  size_t waiting() const;  // rows of this model that no worker has taken
  // Of these, about how many the last of so many new rows of a tenant would follow; at most `most`.
  size_t Ahead(std::string_view tenant, size_t rows, size_t most) const;
  size_t unanswered() const;    // waiting rows, and those that are decoded
  size_t most_waiting() const;  // max_queued_rows
  // Waits for a limited time until fewer than `most` rows wait, or until WakeWaiting was called
  // after wakes() returned `seen`. Drops cancelled rows if the time is up.
  void WaitForPlaces(size_t most, uint64_t seen);
  uint64_t wakes() const;
  void WakeWaiting() noexcept;
  // Fails the waiting rows of a listener.
  void Withdraw(const RowListener& listener, const Error& error) noexcept;

  std::string Description() const;  // one line for the log: model, workers, bounds of a call

 private:
  const LoadedModel model_;
  const std::shared_ptr<ModelWork> work_;
  const std::unique_ptr<const QueueShare> share_;
  std::mutex submit_mutex_;  // so that no other thread fills the room that Submit has found
};

}  // namespace ct2triton
