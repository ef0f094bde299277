// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "queue/job.h"

namespace ct2triton {

struct TenantJobs;

// Tenants, the one first whose next job starts first.
using TenantOrder = std::map<Place, TenantJobs*>;

// Where a tenant is in one of several orders. Takes no memory once it is made.
class TenantPlace {
 public:
  TenantPlace(TenantJobs* tenant, uint64_t number);

  void MoveTo(TenantOrder* order, uint64_t start) noexcept;  // null: into none

 private:
  TenantOrder::node_type node_;  // while it is in none
  TenantOrder* order_ = nullptr;
  TenantOrder::iterator at_;
};

// The waiting jobs of one tenant, in the order of their places.
struct TenantJobs {
  using Jobs = std::map<Place, Job>;

  TenantJobs(std::string_view called, uint64_t number)
      : name(called), place(this, number), narrow_place(this, number) {}

  Jobs& Of(const CheckedRow& row) { return row.copies == 1 ? narrow : wide; }
  bool empty() const { return narrow.empty() && wide.empty(); }

  const std::string name;
  Jobs narrow;  // of rows with one sequence, which may go past the others
  Jobs wide;
  uint64_t turn = 0;   // of rows that come now
  uint64_t start = 0;  // of the next job, in the virtual time of all tenants
  TenantPlace place, narrow_place;
  // Of the only cursor, once it has given a job of the tenant:
  bool visited = false;
  TenantJobs* visited_before = nullptr;
  Jobs::iterator next_narrow, next_wide;
  uint64_t next_start = 0;
};

// The jobs of a queue: of each tenant in the order of their places, and found by their row and by
// who waits. Tenants share by start-time fair queueing: the next job is of the one whose start is
// the earliest, and moves it on by what the job costs. No operation walks through the jobs or the
// tenants. For one thread at a time.
class WaitingJobs {
 public:
  // Goes through the jobs in order. The job that it has given may be taken. One at a time, and
  // nothing else is asked meanwhile.
  class Cursor {
   public:
    explicit Cursor(WaitingJobs* jobs) noexcept : jobs_(*jobs) { jobs_.AdvanceTime(); }
    ~Cursor();
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    Job* Next() noexcept { return NextOf(jobs_.waiting_); }  // null at the end
    // Passes over wide jobs. Next is not called any more.
    Job* NextNarrow() noexcept { return NextOf(jobs_.narrow_); }

   private:
    Job* NextOf(const TenantOrder& order) noexcept;
    void Visit(TenantJobs* tenant) noexcept;

    WaitingJobs& jobs_;
    TenantJobs* visited_ = nullptr;  // the last one
  };

  // Adds a job for the row, `later` turns after the tenant's current one. If an equal row of the
  // tenant waits, the waiter joins its job, which moves forward if this turn is earlier. An
  // exception changes nothing.
  void Add(CheckedRow row, Waiter waiter, std::string_view tenant, uint64_t later);
  Job Take(Job* job) noexcept;
  // Takes all that one listener waits for, with the jobs that no other listener waits for.
  Waiters TakeWaiters(const RowListener& listener) noexcept;
  // Takes what cancelled requests wait for. Each call asks a bounded number of listeners, so that
  // several calls ask all.
  Waiters TakeCancelled() noexcept;

  bool empty() const { return size() == 0; }
  size_t size() const { return size_; }
  size_t sequences() const { return sequences_; }  // that their rows have in a step of a loop
  Job* First() noexcept;

 private:
  using Listeners = std::unordered_map<const RowListener*, Waiter*>;  // to the first of its waiters

  TenantJobs& JobsOf(std::string_view tenant);
  void ForgetEven() noexcept;
  void AdvanceTime() noexcept;
  void Settle(TenantJobs* tenant) noexcept;
  Job* FindEqual(const CheckedRow& row, const TenantJobs& tenant, size_t hash) noexcept;
  Job* Insert(CheckedRow row, TenantJobs* tenant, size_t hash, uint64_t turn);
  Job Remove(Job* job) noexcept;
  void MoveForward(Job* job, uint64_t turn) noexcept;
  void Link(Waiter* waiter, Waiter** first) noexcept;
  void Unlink(Waiter* waiter) noexcept;
  const RowListener* FindCancelled(size_t bucket) const noexcept;

  // Tenants that have waiting rows or have had more than their share, by their names.
  std::map<std::string_view, std::unique_ptr<TenantJobs>> tenants_;
  TenantOrder waiting_;  // those with jobs
  TenantOrder narrow_;   // with narrow jobs
  TenantOrder idle_;     // without jobs
  uint64_t time_ = 0;    // virtual: the start of the first job
  size_t size_ = 0;
  std::unordered_multimap<size_t, Job*> by_hash_;  // jobs that equal rows may join
  Listeners listeners_;
  size_t next_asked_ = 0;  // bucket of listeners_, counted on and on
  size_t sequences_ = 0;
  uint64_t number_ = 0;  // of the next place
};

}  // namespace ct2triton
