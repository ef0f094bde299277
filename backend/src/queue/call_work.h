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
  CallWork(std::shared_ptr<const Weights> weights, const PoolSettings& settings,
           std::shared_ptr<Scheduler> scheduler);
  ~CallWork() override;  // when every row is answered

  RowQueue& queue() { return queue_; }

  int Claim(size_t lanes, bool spare) noexcept override;
  void Run(int piece) noexcept override;
  void Release(int piece) noexcept override;
  bool Active() const noexcept override;
  bool Waiting() const noexcept override { return queue_.size() > 0; }
  size_t threads_per_piece() const noexcept override { return settings_.threads_per_worker; }

 private:
  struct Lane {
    std::unique_ptr<CallEngine> engine;
    size_t lanes = 1;  // among which the waiting rows are divided
    bool busy = false;
  };

  const std::shared_ptr<const Weights> weights_;
  const PoolSettings settings_;
  const std::shared_ptr<Scheduler> scheduler_;
  RowQueue queue_;
  std::vector<Lane> lanes_;
};

}  // namespace ct2triton
