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

// Encodes sources beside the loops, because all rows of a loop wait while it encodes one. Long
// sources are work of its own, short ones are encoded by threads that have nothing else to do.
// Loops then take the rows with their encodings. Equal sources are encoded once. Thread-safe.
class EncodeWork : public Workload {
 private:
  enum class State { kWaiting, kRunning, kEncoded };
  struct Source {
    std::vector<Job> jobs{};
    std::shared_ptr<const void> encoding{};
    State state = State::kWaiting;
  };
  using Sources = std::list<Source>;

 public:
  using Begun = Sources::iterator;

  // `ready`: called without a lock when rows can be taken. `owner`: see LoopWork. `most_helpers`:
  // of the encoding of a source.
  EncodeWork(std::shared_ptr<const LoopModel> model, std::shared_ptr<Scheduler> scheduler,
             std::function<void()> ready, const void* owner, size_t most_helpers);
  ~EncodeWork() override;  // all rows must have been taken

  // Takes a row whose source a thread will encode. False if memory is exhausted: the caller keeps
  // the row.
  bool Add(Job* row) noexcept;
  // Takes rows of one source. The caller encodes it, unless rows of this source are here already:
  // then there is nothing to do. Throws std::bad_alloc: then the caller keeps the rows.
  std::optional<Begun> Begin(std::vector<Job>* rows);
  void Encode(Begun source) noexcept;

  // Rows and the encodings of their sources: keep these until a loop has admitted the rows. A
  // source without one could not be encoded, and the loop will report it.
  struct Encoded {
    std::vector<Job> jobs{};
    std::vector<std::shared_ptr<const void>> encodings{};
  };
  // Rows of the sources that were encoded first, until they have so many sequences; so many narrow
  // rows besides; and all that were cancelled. Throws std::bad_alloc; then none was taken.
  Encoded Take(size_t sequences, size_t narrow_rows);

  // Whether rows of this source are here.
  bool Has(const Ids& source);

  size_t waiting() const { return waiting_; }  // sources that nobody encodes yet
  // Sequences that its rows have in a step; read without a lock, may be stale.
  size_t sequences() const { return sequences_; }
  size_t encoded_sequences() const { return encoded_sequences_; }  // of these
  LoopCounters counters() const;                                   // of the encodings made here

  int Next(size_t lanes, bool spare) const noexcept override;
  void Claim(int task, size_t lanes) noexcept override;
  void Run(int task) noexcept override;
  void Release(int task) noexcept override;
  bool Active() const noexcept override { return waiting_ + running_ > 0; }
  size_t cores_per_task() const noexcept override { return 1; }
  size_t most_helpers() const noexcept override { return most_helpers_; }

 private:
  Sources::iterator Find(const Ids& source);
  Sources::iterator Put(Job* rows, size_t count, State state);
  Sources::iterator TakeWaiting();
  std::optional<CheckedRow> RowOf(Sources::iterator source);

  const std::shared_ptr<const LoopModel> model_;
  const std::shared_ptr<Scheduler> scheduler_;
  const std::function<void()> ready_;
  const size_t most_helpers_;
  mutable std::mutex mutex_;
  Sources sources_;  // in order of arrival
  LoopCounters counters_;
  std::atomic<size_t> waiting_{0};  // sources without a claimed task
  std::atomic<size_t> running_{0};  // tasks; written under the scheduler's lock
  std::atomic<size_t> sequences_{0};
  std::atomic<size_t> encoded_sequences_{0};
};

}  // namespace ct2triton
