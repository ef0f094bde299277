// SPDX-License-Identifier: Apache-2.0
#include "queue/worker_pool.h"

#include <algorithm>
#include <mutex>

#include "error.h"

namespace ct2triton {

bool PoolSettings::operator==(const PoolSettings& other) const {
  return workers == other.workers && threads_per_worker == other.threads_per_worker &&
         bounds.max_rows == other.bounds.max_rows && bounds.max_tokens == other.bounds.max_tokens &&
         bounds.max_search_tokens == other.bounds.max_search_tokens;
}

std::shared_ptr<WorkerPool> WorkerPool::Get(std::shared_ptr<const Weights> weights,
                                            const PoolSettings& settings) {
  static std::mutex mutex;
  static std::vector<std::weak_ptr<WorkerPool>> pools;
  const std::lock_guard<std::mutex> lock(mutex);
  pools.erase(std::remove_if(pools.begin(), pools.end(), [](const auto& p) { return p.expired(); }),
              pools.end());
  for (const auto& known : pools) {
    auto pool = known.lock();
    if (pool && pool->weights_ == weights && pool->settings() == settings) return pool;
  }
  auto pool = std::make_shared<WorkerPool>(std::move(weights), settings);
  pools.push_back(pool);
  return pool;
}

WorkerPool::WorkerPool(std::shared_ptr<const Weights> weights, const PoolSettings& settings)
    : weights_(std::move(weights)), settings_(settings), queue_(settings.workers) {
  std::vector<std::promise<void>> started(settings_.workers);
  try {
    for (auto& promise : started) {
      threads_.emplace_back([this, &promise] { Work(&promise); });
    }
    for (auto& promise : started) promise.get_future().get();
  } catch (...) {
    StopWorkers();  // the threads hold references to `started`
    throw;
  }
}

WorkerPool::~WorkerPool() { StopWorkers(); }

void WorkerPool::StopWorkers() noexcept {
  queue_.Close();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::Work(std::promise<void>* started) {
  std::unique_ptr<CallEngine> engine;
  try {
    engine = std::make_unique<CallEngine>(weights_, settings_.threads_per_worker);
    started->set_value();
  } catch (...) {
    started->set_exception(std::current_exception());
    return;
  }
  while (true) {
    std::vector<Job> jobs;
    try {
      jobs = queue_.TakeCall(settings_.bounds);
    } catch (...) {  // no memory to choose rows: the queue becomes one row shorter
      queue_.FailOldest(OutOfMemory());
      continue;
    }
    if (jobs.empty()) return;
    RunJobs(engine.get(), std::move(jobs));
    if (queue_.empty()) engine->Idle();
  }
}

void WorkerPool::RunJobs(CallEngine* engine, std::vector<Job> jobs) noexcept {
  try {
    RunningCall call(&jobs);
    if (jobs.empty()) return;
    try {
      call.Deliver(RunCall(engine, &call));
      return;
    } catch (...) {
      const Error error = CurrentError();
      if (jobs.size() == 1) return call.Fail(error);
    }
    // One row may have spoilt the call, or all were too many: each gets a call of its own.
    call.KeepUnanswered();
    for (Job& job : jobs) {
      std::vector<Job> alone;
      alone.push_back(std::move(job));
      RunJobs(engine, std::move(alone));
    }
  } catch (...) {
    const Error error = CurrentError();
    for (Job& job : jobs) FailJob(&job, error);
  }
}

std::vector<RowResult> WorkerPool::RunCall(CallEngine* engine, RunningCall* call) {
  auto results = engine->Run(call->rows(), call, call->times());
  for (size_t i = 0; i < results.size(); ++i) {
    const CheckedRow& row = *call->rows()[i];
    if (row.may_overrun) queue_.CountLimit(row, results[i].reached_limit);
  }
  return results;
}

}  // namespace ct2triton
