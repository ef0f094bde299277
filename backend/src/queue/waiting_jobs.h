// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "queue/job.h"

namespace ct2triton {

// The jobs of a queue, in the order of their places, and found by their row and by who waits. No
// operation walks through them. For one thread at a time.
class WaitingJobs {
 private:
  using Jobs = std::map<Place, Job>;

 public:
  // Goes through the jobs in order. The job that it has given may be taken.
  class Cursor {
   public:
    explicit Cursor(WaitingJobs* jobs)
        : jobs_(*jobs), narrow_(jobs->narrow_.begin()), wide_(jobs->wide_.begin()) {}

    Job* Next() noexcept;        // null at the end
    Job* NextNarrow() noexcept;  // passes over jobs of several sequences

   private:
    WaitingJobs& jobs_;
    Jobs::iterator narrow_, wide_;
  };

  // Adds a job for the row behind those of the same or an earlier turn. If an equal row waits, the
  // waiter joins its job, which moves forward if `turn` is earlier. An exception leaves all as it
  // was.
  void Add(CheckedRow row, Waiter waiter, uint64_t turn);
  Job Take(Job* job) noexcept;
  // Takes all that one listener waits for, with the jobs that nobody else waits for.
  Waiters TakeWaiters(const RowListener& listener) noexcept;
  // Takes what clients wait for that have gone. Asks a bounded number of listeners at each call,
  // each of them in turn.
  Waiters TakeCancelled() noexcept;

  bool empty() const { return size() == 0; }
  size_t size() const { return narrow_.size() + wide_.size(); }
  size_t step_rows() const { return step_rows_; }  // in a step of a loop, where each beam counts
  Job* First() noexcept { return Cursor(this).Next(); }

 private:
  using Listeners = std::unordered_map<const RowListener*, Waiter*>;  // to the first of its waiters

  Jobs& Of(const CheckedRow& row) { return row.copies == 1 ? narrow_ : wide_; }
  Job* FindEqual(const CheckedRow& row, size_t hash) noexcept;
  Job* Insert(CheckedRow row, size_t hash, Place place);
  Job Remove(Job* job) noexcept;
  void MoveForward(Job* job, uint64_t turn) noexcept;
  void Link(Waiter* waiter, Waiter** first) noexcept;
  void Unlink(Waiter* waiter) noexcept;
  const RowListener* FindCancelled(size_t bucket) const noexcept;

  Jobs narrow_;  // of rows with one sequence, which may go past the others
  Jobs wide_;
  std::unordered_multimap<size_t, Job*> by_hash_;  // jobs that equal rows may join
  Listeners listeners_;
  size_t next_asked_ = 0;  // bucket of listeners_, counted on and on
  size_t step_rows_ = 0;
  uint64_t number_ = 0;  // of the next place
};

}  // namespace ct2triton
