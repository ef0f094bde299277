// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/loop/loop_engine.h"
#include "queue/job.h"
#include "queue/scheduler.h"

namespace ct2triton {

// Rows of long sources, which are encoded beside the loops, as work of its own: a loop that encoded
// one would hold up all of its rows. Loops then take them with their encodings. Equal sources are
// encoded once. Threads may use it at once.
class LongSources : public Workload {
 public:
  // `ready`: called without a lock when rows can be taken. `owner`: see LoopWork.
  LongSources(std::shared_ptr<const LoopModel> model, std::shared_ptr<Scheduler> scheduler,
              std::function<void()> ready, const void* owner);
  ~LongSources() override;  // no row may be left

  bool Add(Job* job) noexcept;  // false where memory is exhausted: the caller keeps it

  // Rows of one source, and its encoding, which is to be held until a loop has admitted them.
  struct Encoded {
    std::vector<Job> jobs;
    std::shared_ptr<const void> encoding{};  // none: it failed, as it will in the loop
  };
  // The first that are there; empty where none are.
  Encoded Take() noexcept;

  // Without a lock, and so a moment old. Rows of steps.
  size_t rows() const { return rows_; }
  size_t encoded_rows() const { return encoded_rows_; }  // of these
  LoopCounters counters() const;                         // of what was encoded

  int Next(size_t lanes, bool spare) const noexcept override;
  void Claim(int piece, size_t lanes) noexcept override;
  void Run(int piece) noexcept override;
  void Release(int piece) noexcept override;
  bool Active() const noexcept override { return waiting_ + running_ > 0; }
  size_t cores_per_piece() const noexcept override { return 1; }

 private:
  enum class State { kWaiting, kRunning, kEncoded };
  // Rows of one source.
  struct Group {
    Encoded rows;
    State state = State::kWaiting;
  };
  using Groups = std::list<Group>;

  std::optional<CheckedRow> Start(Groups::iterator* group);

  const std::shared_ptr<const LoopModel> model_;
  const std::shared_ptr<Scheduler> scheduler_;
  const std::function<void()> ready_;
  mutable std::mutex mutex_;
  Groups groups_;  // in the order in which they came
  LoopCounters counters_;
  std::atomic<size_t> waiting_{0};  // groups that no piece was claimed for
  std::atomic<size_t> running_{0};  // pieces; written under the scheduler's lock
  std::atomic<size_t> rows_{0};
  std::atomic<size_t> encoded_rows_{0};
};

}  // namespace ct2triton
