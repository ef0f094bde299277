// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/calls/call_engine.h"
#include "queue/call_plan.h"
#include "queue/row_queue.h"
#include "queue/scheduler.h"

namespace ct2triton {

struct PoolSettings {
  size_t workers = 1;  // calls and loops side by side
  size_t threads_per_worker = 1;
  CallBounds bounds;

  bool operator==(const PoolSettings& other) const;
};

// Rows of one model that calls of CTranslate2 decode, as work for the machine's threads.
class CallWork : public Workload {
 public:
  // `model`: whose share of the machine it has.
  CallWork(std::shared_ptr<const Weights> weights, const PoolSettings& settings,
           std::shared_ptr<Scheduler> scheduler, const void* model);
  ~CallWork() override;  // when every row is answered

  RowQueue& queue() { return queue_; }

  int Next(size_t lanes, bool spare) const noexcept override;
  void Claim(int piece, size_t lanes) noexcept override;
  void Run(int piece) noexcept override;
  void Release(int piece) noexcept override;
  bool Active() const noexcept override;
  size_t cores_per_piece() const noexcept override { return settings_.threads_per_worker; }

 private:
  struct Lane {
    std::unique_ptr<CallEngine> engine;
    size_t lanes = 1;  // among which the waiting rows are divided
  };

  size_t busy() const { return lanes_.size() - free_.size(); }

  const std::shared_ptr<const Weights> weights_;
  const PoolSettings settings_;
  const std::shared_ptr<Scheduler> scheduler_;
  RowQueue queue_;
  std::vector<Lane> lanes_;
  std::vector<int> free_;  // of them; the last one is taken first. Under the scheduler's lock
};

}  // namespace ct2triton
