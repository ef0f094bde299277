// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "queue/call_work.h"
#include "queue/gpu_workers.h"
#include "queue/loop_work.h"
#include "queue/scheduler.h"

namespace ct2triton {

// Decodes all rows of one set of weights. On a CPU, the machine's threads run its loops and calls.
// On a GPU, either threads of its own run calls, or one thread runs a loop and calls. Models on the
// same files with the same settings share one object.
class ModelWork {
 public:
  // Throws Error when a worker cannot start.
  static std::shared_ptr<ModelWork> Get(const LoadedModel& model, const WorkSettings& settings,
                                        const LoopSettings& loops);

  // Null `call_model`: no row may need a call; null `loop_model`: no row may need a loop.
  ModelWork(std::shared_ptr<CallModel> call_model, std::shared_ptr<const LoopModel> loop_model,
            const Device& device, const WorkSettings& settings, const LoopSettings& loops);
  ~ModelWork();

  // Accepts the rows of one request and queues each for its loop or call.
  void Add(std::vector<CheckedRow> rows, const std::vector<size_t>& positions,
           const std::shared_ptr<RowListener>& listener, const QueueShare& share,
           uint64_t queued_ns);

  // See RowQueue.
  size_t Ahead(std::string_view tenant, size_t rows, size_t most) const;
  // Fails the waiting rows of a listener.
  void Withdraw(const RowListener& listener, const Error& error) noexcept;
  // Fails the waiting rows that were cancelled.
  void DropCancelled() noexcept;

  const WorkSettings& settings() const { return settings_; }
  std::vector<LoopCounters> loop_counters() const;  // of each loop that has run
  std::string loop_failure() const;  // why loops were given up, so that calls run all rows they can
  // Why no row can run until the process ends; none: rows can run. See DeviceModel.
  std::optional<Error> loss() const;
  size_t decoding_threads() const { return OnGpu() ? 0 : scheduler_->threads(); }
  uint64_t BusyTime_ns() const;  // that the machine's threads spent on these rows; 0 on a GPU

 private:
  bool OnGpu() const { return gpu_ || scheduler_->OnGpu(); }

  const std::shared_ptr<CallModel> call_model_;
  const std::shared_ptr<const LoopModel> loop_model_;
  std::shared_ptr<Scheduler> scheduler_;  // null with gpu_
  const WorkSettings settings_;
  const LoopSettings loop_settings_;
  std::unique_ptr<GpuWorkers> gpu_;  // for calls on a GPU; null: the next two are used
  std::unique_ptr<CallWork> calls_;
  std::unique_ptr<LoopWork> loops_;  // null where the model has no loop
};

}  // namespace ct2triton
