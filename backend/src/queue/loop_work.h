// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/loop/loop_engine.h"
#include "queue/admission.h"
#include "queue/call_work.h"
#include "queue/long_sources.h"
#include "queue/loop_count.h"
#include "queue/row_queue.h"
#include "queue/running_loop.h"
#include "queue/scheduler.h"

namespace ct2triton {

// Rows of one model that decode loops run, as work for the machine's threads. A thread runs a
// loop for one step at a time. The rows share one loop, because every loop pays the fixed cost of a
// step, and several while threads would be idle and steps get shorter.
class LoopWork : public Workload {
 public:
  // `loops`: at most. `calls`: runs the rows that a loop failed at; null: none may. `owner`: key of
  // the share of the machine that it uses.
  LoopWork(std::shared_ptr<const LoopModel> model, const LoopSettings& settings, size_t loops,
           std::shared_ptr<Scheduler> scheduler, CallWork* calls, const void* owner);
  ~LoopWork() override;  // when every row is answered

  RowQueue& queue() { return queue_; }
  std::vector<LoopCounters> counters() const;  // of each loop, as of its last step
  // Several steps in a row failed, each with other rows: calls should run what they can.
  bool given_up() const noexcept { return given_up_; }
  std::string failure() const;  // of the last of these steps; empty where it is not given up

  int Next(size_t lanes, bool spare) const noexcept override;
  void Claim(int task, size_t lanes) noexcept override;
  void Run(int task) noexcept override;
  void Release(int task) noexcept override;
  bool Active() const noexcept override;
  size_t cores_per_task() const noexcept override { return 1; }  // our kernels use no more

 private:
  struct Lane {
    std::unique_ptr<RunningLoop> loop;
    size_t sequences = 0;  // of its rows, as of the last step; under the scheduler's lock
    size_t lanes = 1;      // loops among which the rows are divided
    bool admits = true;    // false: fewer loops are wanted
    size_t steps_held = 0;
    uint64_t seen = 0;                       // of changes_, when it took rows
    bool found_none = false;                 // when it last ran, and it had none
    size_t promised_bytes = 0;               // to the rows that it has just taken
    size_t taken_sequences = 0;              // of these
    bool encoded = false;                    // these are of a long source,
    std::shared_ptr<const void> encoding{};  // which has this encoding
    uint64_t encodings_given = 0;            // of long sources, so far
  };

  // Of the rows that wait for a loop, and of all that do not wait for an encoding.
  size_t waiting_sequences() const;
  size_t sequences() const { return running_ + taken_ + waiting_sequences(); }
  // Lanes that run or have rows.
  size_t used_lanes() const { return lanes_.size() - free_.size(); }
  bool MayOpen(size_t used) const noexcept;
  size_t LoopsFor(size_t lanes) const noexcept;
  bool IsAmongFullest(const Lane& lane, size_t lanes) const noexcept;
  LoopState StateOf(const Lane& lane) const;
  std::vector<Job> TakeRows(Lane* lane);
  std::vector<Job> TakeWaiting(const LoopState& state);
  bool IsLong(const CheckedRow& row) const;
  void SetLongAside(const Lane& lane, std::vector<Job>* jobs) noexcept;
  void EndPromise(Lane* lane) noexcept;
  void CountStepLocked(const std::optional<Error>& failure, bool stepped) noexcept;
  void RunAlone(std::vector<Job> jobs) noexcept;

  const std::shared_ptr<const LoopModel> model_;
  const LoopSettings settings_;
  const LoopCount loop_count_;
  const std::shared_ptr<Scheduler> scheduler_;
  CallWork* const calls_;
  RowQueue queue_;
  std::vector<Lane> lanes_;
  // Numbers of lanes, under the scheduler's lock: with rows, the one first that has waited longest
  // for a step; and without. A lane that runs is in neither.
  std::vector<int> with_rows_;
  std::vector<int> free_;             // the last one is taken first
  std::atomic<uint64_t> changes_{1};  // whenever rows came, or a loop that has rows was run
  uint64_t no_room_at_ = 0;           // of changes_: nothing that waits has room in one more loop
  std::mutex admission_mutex_;        // what one loop is promised, the next one does not get
  size_t promised_bytes_ = 0;         // of keys and values; some of it may be in use by now
  std::atomic<size_t> running_{0};    // sequences of the rows of all loops
  std::atomic<size_t> taken_{0};      // that loops have taken and do not run yet
  std::atomic<size_t> wide_cache_bytes_{0};
  mutable std::mutex counters_mutex_;
  std::vector<LoopCounters> counters_;  // of each lane
  size_t failed_steps_ = 0;             // since the last one that did not fail
  std::optional<Error> failure_;
  std::atomic<bool> given_up_{false};
  // Null where a thread cannot encode beside the loops. Last: its threads use the others.
  std::unique_ptr<LongSources> long_sources_;
};

}  // namespace ct2triton
