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
#include "queue/encode_work.h"
#include "queue/help_watch.h"
#include "queue/loop_count.h"
#include "queue/row_queue.h"
#include "queue/running_loop.h"
#include "queue/scheduler.h"
#include "queue/sources_in_making.h"

namespace ct2triton {

// Rows of one model that decode loops run, as work for the machine's threads. A thread runs a loop
// for one step at a time. The rows share one loop, because every loop pays the fixed cost of a
// step, and use several loops only while threads are idle and more loops make steps shorter.
// Threads that are idle then encode the sources of waiting rows, and help with steps.
class LoopWork : public Workload {
 public:
  // `loops`: at most. `calls`: runs rows that a loop failed at; null: they fail. `owner`: key of
  // the share of the machine that it uses.
  LoopWork(std::shared_ptr<const LoopModel> model, const LoopSettings& settings, size_t loops,
           std::shared_ptr<Scheduler> scheduler, CallWork* calls, const void* owner);
  ~LoopWork() override;  // all rows must be answered

  RowQueue& queue() { return queue_; }
  std::vector<LoopCounters> counters() const;  // of each loop, as of its last step
  // Several steps in a row failed, each with other rows: rows go to calls if possible.
  bool given_up() const noexcept { return given_up_; }
  std::string failure() const;  // message of the last failed step; empty unless given up

  int Next(size_t lanes, bool spare) const noexcept override;
  void Claim(int task, size_t lanes) noexcept override;
  void Run(int task) noexcept override;
  void Release(int task) noexcept override;
  bool Active() const noexcept override;
  size_t cores_per_task() const noexcept override { return 1; }
  size_t most_helpers() const noexcept override { return most_helpers_; }

 private:
  // Bytes of keys and values, and of these, those of wide rows' own tokens.
  struct Promise {
    size_t bytes = 0;
    size_t wide_bytes = 0;

    void Add(const Job& job) noexcept;
    void Add(const Promise& other) noexcept;
    void Remove(const Promise& other) noexcept;
  };
  struct Lane {
    std::unique_ptr<RunningLoop> loop;
    size_t sequences = 0;  // of its rows, as of the last step; under the scheduler's lock
    size_t lanes = 1;      // loops among which the rows are divided
    size_t open = 1;       // loops that had rows or ran when its step began
    bool admits = true;    // false: fewer loops are wanted
    size_t steps_held = 0;
    uint64_t step_ns = 0;        // that its last step took
    uint64_t seen = 0;           // value of changes_ when it last took rows
    bool found_none = false;     // it had no rows when it last ran, or could not be made
    Promise promised;            // to the rows it has just taken
    size_t taken_sequences = 0;  // of these
    bool encoded = false;        // the taken rows are from encode_work_,
    std::vector<std::shared_ptr<const void>> encodings{};  // with these encodings
    std::vector<SourcesInMaking::Place> sources{};         // taken and not encoded yet
  };

  // The number of this task: a source is encoded beside the loops.
  int EncodeTask() const noexcept { return static_cast<int>(lanes_.size()); }

  // Of the rows that wait for a loop, without those that encode_work_ has and has not encoded yet.
  size_t waiting_sequences() const;
  size_t sequences() const;
  size_t FreePlaces() const noexcept;
  size_t PlacesLeft(const LoopState& state) const noexcept;
  // Lanes that run or have rows.
  size_t used_lanes() const { return lanes_.size() - free_.size(); }
  void MakeLoop(Lane* lane);
  bool MayOpen(size_t used) const noexcept;
  bool WaitsForEncoding() const noexcept;
  bool MayEncode() const noexcept;
  bool FirstHasMemory(size_t promised_bytes) const noexcept;
  size_t MaxCacheBytes() const noexcept;
  size_t MostThreads() const noexcept { return lanes_.size() * settings_.threads; }
  size_t LoopsWorth(size_t rows) const noexcept;
  size_t LoopsFor(size_t lanes) const noexcept;
  bool IsAmongFullest(const Lane& lane, size_t lanes) const noexcept;
  LoopState StateOf(const Lane& lane) const;
  double StepsWaited(const Lane& lane) const;
  std::vector<Job> TakeRows(Lane* lane);
  std::vector<Job> TakeWaiting(const LoopState& state);
  EncodeWork::Encoded TakeEncoded(const LoopState& state) noexcept;
  struct ToEncode {
    bool found = false;  // rows
    std::optional<EncodeWork::Begun> source{};
    std::optional<SourcesInMaking::Place> place{};
    std::vector<Job> failed{};  // for want of memory
  };
  ToEncode TakeToEncode();
  std::optional<size_t> LongRoom() const noexcept;
  SourceState StateOfSource(const CheckedRow& row);
  CacheUse CacheNow() const;
  void EncodeWaiting() noexcept;
  bool IsLong(const CheckedRow& row) const;
  void SetLongAside(const Lane& lane, std::vector<Job>* jobs) noexcept;
  void EndSources(const SourcesInMaking::Place* sources, size_t count) noexcept;
  void EndPromise(const Promise& promise) noexcept;
  void EndSources(Lane* lane) noexcept;
  void EndPromise(Lane* lane) noexcept;
  void CountStepLocked(const std::optional<Error>& failure, bool stepped) noexcept;
  void RunAlone(std::vector<Job> jobs, bool lacked_memory) noexcept;

  const std::shared_ptr<const LoopModel> model_;
  const LoopSettings settings_;
  const size_t most_helpers_;     // of a step
  const size_t cores_with_help_;  // of loops and their helpers; 1: nobody helps
  const LoopCount loops_without_help_;
  const LoopCount loops_with_help_;
  HelpWatch help_watch_;
  const std::shared_ptr<Scheduler> scheduler_;
  CallWork* const calls_;
  RowQueue queue_;
  std::vector<Lane> lanes_;
  // Idle lanes, under the scheduler's lock: those with rows, longest wait first; then those
  // without.
  std::vector<int> with_rows_;
  std::vector<int> free_;             // the last one is taken first
  std::atomic<uint64_t> changes_{1};  // rises when rows arrive and when a loop with rows has run
  uint64_t no_room_at_ = 0;  // value of changes_ when no waiting row fitted into one more loop
  std::atomic<bool> has_loop_{false};                 // a loop was made
  size_t encode_tasks_ = 0;                           // that run, under the scheduler's lock
  std::atomic<size_t> encode_tasks_without_rows_{0};  // of these, those that have not taken any yet
  std::atomic<uint64_t> none_to_encode_at_{0};        // value of changes_ when one found none
  std::mutex admission_mutex_;  // so that no memory is promised to two loops; of what follows:
  SourcesInMaking sources_in_making_;
  bool rows_wait_for_source_ = false;      // a row was passed over, because another loop encodes it
  Promise promised_;                       // a part may be in use already
  std::atomic<size_t> promised_bytes_{0};  // of it; read without the lock
  std::atomic<size_t> running_{0};         // sequences of the rows of all loops
  std::atomic<size_t> taken_{0};           // sequences that loops have taken but do not run yet
  std::atomic<size_t> wide_cache_bytes_{0};
  mutable std::mutex counters_mutex_;
  std::vector<LoopCounters> counters_;  // of each lane
  size_t failed_steps_ = 0;             // since the last step that succeeded
  std::optional<Error> failure_;
  std::atomic<bool> given_up_{false};
  // Null if a thread cannot encode beside the loops. Declared last, because its threads use the
  // other members.
  std::unique_ptr<EncodeWork> encode_work_;
};

}  // namespace ct2triton
