// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/calls/call_model.h"
#include "queue/call_plan.h"
#include "queue/row_queue.h"
#include "queue/scheduler.h"

namespace ct2triton {

struct WorkSettings {
  size_t inter_threads = 1;  // calls and loops side by side
  size_t intra_threads = 1;
  uint64_t calls_idle_ns = 60'000'000'000;  // after them, CTranslate2's model is removed
  CallBounds bounds;

  bool operator==(const WorkSettings& other) const;
};

// Rows of one model that calls of CTranslate2 decode, as work for the machine's threads. They wait
// until CTranslate2's model is loaded.
class CallWork : public Workload, private CallModel::Listener {
 public:
  // `owner`: key of the share of the machine that it uses.
  CallWork(std::shared_ptr<CallModel> model, const WorkSettings& settings,
           std::shared_ptr<Scheduler> scheduler, const void* owner);
  ~CallWork() override;  // all rows must be answered

  RowQueue& queue() { return queue_; }
  // Runs each of these jobs, which are in no queue, in a call of its own.
  void RunAlone(std::vector<Job> jobs) noexcept;

  int Next(size_t lanes, bool spare) const noexcept override;
  void Claim(int task, size_t lanes) noexcept override;
  void Run(int task) noexcept override;
  void Release(int task) noexcept override;
  bool Active() const noexcept override { return waiting() > 0 || busy() > 0; }
  size_t cores_per_task() const noexcept override { return settings_.intra_threads; }

 private:
  struct Lane {
    std::shared_ptr<CallEngine> engine;  // on a GPU, where it belongs to the thread
    size_t lanes = 1;                    // among which the waiting rows are divided
  };

  void ModelCame() noexcept override { scheduler_->Wake(this); }
  void ModelFailed(const Error& error) noexcept override;
  void ModelLeft() noexcept override {  // rows may have arrived meanwhile
    if (waiting() > 0) model_->Fetch();
  }
  std::shared_ptr<CallEngine> EngineOf(Lane* lane);
  std::vector<Job> TakeAlone() noexcept;
  size_t waiting() const { return queue_.size() + alone_jobs_; }
  size_t busy() const { return lanes_.size() - free_.size(); }

  const std::shared_ptr<CallModel> model_;
  const WorkSettings settings_;
  const std::shared_ptr<Scheduler> scheduler_;
  RowQueue queue_;
  std::mutex alone_mutex_;
  std::deque<Job> alone_;  // they run before those of the queue
  std::atomic<size_t> alone_jobs_{0};
  std::vector<Lane> lanes_;
  std::vector<int> free_;  // free lanes; the last one is taken first. Under the scheduler's lock
};

}  // namespace ct2triton
