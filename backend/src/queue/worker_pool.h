// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "engine/calls/call_engine.h"
#include "queue/call_plan.h"
#include "queue/row_queue.h"
#include "queue/running_call.h"

namespace ct2triton {

struct PoolSettings {
  size_t workers = 1;
  size_t threads_per_worker = 1;
  CallBounds bounds;

  bool operator==(const PoolSettings& other) const;
};

// Threads that decode: each has an engine on the same weights, made, used and destroyed on it. A
// worker that is free takes the row that has waited longest and the rows most like it, from
// whatever request, Triton batch or model they came. A row whose end CTranslate2 reports is
// answered then, others when their call has ended.
class WorkerPool {
 public:
  // The pool with these weights and settings, shared with all that ask for the same.
  // Throws Error when a worker cannot start.
  static std::shared_ptr<WorkerPool> Get(std::shared_ptr<const Weights> weights,
                                         const PoolSettings& settings);

  WorkerPool(std::shared_ptr<const Weights> weights, const PoolSettings& settings);
  ~WorkerPool();  // answers every row that still waits, then ends the threads

  RowQueue& queue() { return queue_; }
  const PoolSettings& settings() const { return settings_; }

 private:
  void Work(std::promise<void>* started);
  void RunJobs(CallEngine* engine, std::vector<Job> jobs) noexcept;
  std::vector<RowResult> RunCall(CallEngine* engine, RunningCall* call);
  void StopWorkers() noexcept;

  const std::shared_ptr<const Weights> weights_;
  const PoolSettings settings_;
  RowQueue queue_;
  std::vector<std::thread> threads_;
};

}  // namespace ct2triton
