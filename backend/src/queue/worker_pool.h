// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/calls/engine.h"
#include "engine/weights.h"
#include "queue/call_plan.h"
#include "queue/job.h"
#include "queue/running_call.h"
#include "rows/checked_row.h"
#include "rows/row_listener.h"

namespace ct2triton {

struct PoolSettings {
  size_t workers = 1;
  size_t threads_per_worker = 1;
  CallBounds bounds;

  bool operator==(const PoolSettings& other) const;
};

// Threads that translate: each holds a replica of the same weights, made, used and destroyed on it.
// A worker that is free takes the row that has waited longest and the rows most like it, from
// whatever request, Triton batch or model they came. Equal waiting rows run once. A row of
// which CTranslate2 tells enough (Search::TellsRows) is answered when it has ended, others when
// their call has.
class WorkerPool {
 public:
  // The pool with these weights and settings, shared with all that ask for the same.
  // Throws Error when a worker cannot start.
  static std::shared_ptr<WorkerPool> Get(std::shared_ptr<const Weights> weights,
                                         const PoolSettings& settings);

  WorkerPool(std::shared_ptr<const Weights> weights, const PoolSettings& settings);
  ~WorkerPool();  // answers every row that still waits, then ends the threads

  // Queues the rows of one request, none of them empty; blocks while `max_queued_rows` wait.
  // `positions`: what each row is called when its listener is told of it.
  void Submit(std::vector<CheckedRow> rows, const std::vector<size_t>& positions,
              const std::shared_ptr<RowListener>& listener, size_t max_queued_rows);

  const Weights& weights() const { return *weights_; }
  const PoolSettings& settings() const { return settings_; }

 private:
  using Queue = std::list<Job>;

  void Work(std::promise<void>* started);
  std::vector<Job> TakeCall();  // blocks; empty once the pool ends; throws with the queue as it was
  void FailOldest() noexcept;
  void Answer(Engine* engine, std::vector<Job> jobs) noexcept;
  std::vector<RowResult> Translate(Engine* engine, RunningCall* call);
  void CountLimited(const std::vector<RowResult>& results);
  void Enqueue(CheckedRow row, Waiter waiter);
  void ForgetHash(Queue::iterator job) noexcept;
  void StopWorkers() noexcept;

  const std::shared_ptr<const Weights> weights_;
  const PoolSettings settings_;

  std::atomic<size_t> running_rows_{0};  // taken and not answered; outlives the queue

  std::mutex mutex_;
  std::condition_variable work_;                              // rows wait, or the pool ends
  std::condition_variable space_;                             // the queue is below its bound
  Queue queue_;                                               // in order of arrival
  std::unordered_multimap<size_t, Queue::iterator> by_hash_;  // rows that equal ones may join
  double limit_rate_ = 0;  // part of the beam rows that reached their limit, lately
  bool stopping_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace ct2triton
