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

// What is to be decoded with some weights: on a CPU by the machine's threads, in loops and in
// calls; on a GPU by threads of its own in calls, or by one thread in a loop and the calls beside
// it. Models on the same files with the same settings share one.
class ModelWork {
 public:
  // Throws Error when a worker cannot start.
  static std::shared_ptr<ModelWork> Get(const LoadedModel& model, const WorkSettings& settings,
                                        const LoopSettings& loops);

  // `call_model` null: no row comes that needs a call; `loop_model` null: none that needs a loop.
  ModelWork(std::shared_ptr<CallModel> call_model, std::shared_ptr<const LoopModel> loop_model,
            const Device& device, const WorkSettings& settings, const LoopSettings& loops);
  ~ModelWork();

  // Accepts the rows of one request and queues each for its loop or call.
  void Add(std::vector<CheckedRow> rows, const std::vector<size_t>& positions,
           const std::shared_ptr<RowListener>& listener, const QueueShare& share,
           uint64_t queued_ns);

  // Fails those rows of a listener that still wait.
  void Withdraw(const RowListener& listener, const Error& error) noexcept;
  // Fails the cancelled ones of the waiting rows.
  void DropCancelled() noexcept;

  const WorkSettings& settings() const { return settings_; }
  std::vector<LoopCounters> loop_counters() const;  // of each loop that has run
  std::string loop_failure()
      const;  // why loops were given up, and calls run all rows that they can
  // Why no row can run until the process ends; none: they can. See DeviceModel.
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
  std::unique_ptr<GpuWorkers> gpu_;  // for calls on a GPU; or the other two
  std::unique_ptr<CallWork> calls_;
  std::unique_ptr<LoopWork> loops_;  // null where the model has no loop
};

}  // namespace ct2triton
