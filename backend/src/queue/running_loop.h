// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/loop/loop_engine.h"
#include "error.h"
#include "queue/job.h"
#include "queue/running_rows.h"

namespace ct2triton {

// What running rows use. Wide rows: those whose search has several sequences.
struct LoopLoad {
  size_t sequences = 0;  // of a step
  size_t wide_sequences = 0;
  size_t wide_cache_bytes = 0;  // of their own tokens

  void Add(const LoopLoad& other);
  void Remove(const LoopLoad& other);
};

// One running loop with the jobs of its rows: answers each row as it leaves. Rows that were
// admitted together are reported together.
class RunningLoop : private LoopListener {
 public:
  explicit RunningLoop(std::unique_ptr<LoopEngine> loop) : loop_(std::move(loop)) {}

  // Drops cancelled rows and admits the jobs. Returns those that could not be admitted: run each
  // alone.
  std::vector<Job> Admit(std::vector<Job> jobs) noexcept;
  // Runs one step. If it fails, all jobs leave the loop, as `failed`: run each alone.
  void Step(std::vector<Job>* failed) noexcept;

  // Error of the last step, or of encoding its rows if none runs; none: nothing failed, or memory
  // ran out.
  const std::optional<Error>& step_failure() const { return step_failure_; }
  // Whether jobs that failed since the last Admit lacked memory, and nothing else.
  bool lacked_memory() const { return lacked_memory_; }

  size_t running() const { return places_.size(); }
  const LoopLoad& load() const { return load_; }
  const LoopCounters& counters() const { return loop_->counters(); }

 private:
  struct Admission {
    std::vector<Job> jobs;
    std::optional<RunningRows> rows;  // of the jobs; set once it was made
    size_t running = 0;
  };
  struct Place {
    std::list<Admission>::iterator admission;
    size_t position;
    LoopLoad load;
  };

  std::vector<Job> Join(std::vector<Job> jobs) noexcept;
  bool TryAdmit(std::vector<Job>* jobs) noexcept;
  bool TryAdmitAlone(Job* job) noexcept;
  void AdmitAll(std::vector<Job>* admitted);
  std::optional<Error> FailureOfLoop() noexcept;
  void DropCancelled() noexcept;
  void Leave(std::unordered_map<LoopRow, Place>::iterator place) noexcept;
  void TakeAll(std::vector<Job>* to) noexcept;
  void RowGrew(LoopRow row, int64_t id) noexcept override;
  void RowEnded(LoopRow row, RowResult result) noexcept override;

  const std::unique_ptr<LoopEngine> loop_;
  std::list<Admission> admissions_;
  std::unordered_map<LoopRow, Place> places_;
  LoopLoad load_;
  std::optional<Error> step_failure_;
  std::optional<Error> admission_failure_;  // the last before this step
  bool lacked_memory_ = true;
};

}  // namespace ct2triton
