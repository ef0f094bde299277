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

// Tenants, ordered by the start of their next job.
using TenantOrder = std::map<Place, TenantJobs*>;

// A tenant's entry in one of several orders. Allocates memory only when it is made.
class TenantPlace {
 public:
  TenantPlace(TenantJobs* tenant, uint64_t number);

  void MoveTo(TenantOrder* order, uint64_t start) noexcept;  // null: removes it

 private:
  TenantOrder::node_type node_;  // holds the entry while it is in no order
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
  Jobs narrow;  // of rows with one sequence, which may overtake the others
  Jobs wide;
  uint64_t position = 0;  // position of rows that arrive now
  uint64_t start = 0;     // of the next job, in the virtual time of all tenants
  uint64_t lull = 0;      // of the queue, when a row last arrived
  const std::shared_ptr<TenantDebt> debt = std::make_shared<TenantDebt>();
  TenantPlace place, narrow_place;
  // Set by the only cursor, once it has returned a job of the tenant:
  bool visited = false;
  TenantJobs* visited_before = nullptr;
  Jobs::iterator next_narrow, next_wide;
  uint64_t next_start = 0;
};

// The jobs of a queue: in order for each tenant, and indexed by row and by waiter. Tenants share by
// start-time fair queueing: the next job is that of the tenant with the earliest start, and
// advances its start by the job's cost: what is known of it at once, the rest when it has run. A
// debt of the time before no row waited is forgiven. No operation walks through all jobs or
// tenants. Not thread-safe.
class WaitingJobs {
 public:
  // Goes through the jobs in order. The job that it returned may be taken. Only one cursor at a
  // time, and no other call meanwhile.
  class Cursor {
   public:
    explicit Cursor(WaitingJobs* jobs) noexcept : jobs_(*jobs) { jobs_.AdvanceTime(); }
    ~Cursor();
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    Job* Next() noexcept { return NextOf(jobs_.waiting_); }  // null at the end
    // Skips wide jobs. Do not call Next afterwards.
    Job* NextNarrow() noexcept { return NextOf(jobs_.narrow_); }

   private:
    Job* NextOf(const TenantOrder& order) noexcept;
    void Visit(TenantJobs* tenant) noexcept;

    WaitingJobs& jobs_;
    TenantJobs* visited_ = nullptr;  // tenant of the last job
  };

  // Adds a job for the row, `later` positions after the tenant's current one. If an equal row of
  // the tenant waits, the waiter joins its job, which moves forward if this position is earlier. An
  // exception changes nothing.
  void Add(CheckedRow row, Waiter waiter, std::string_view tenant, uint64_t later);
  Job Take(Job* job) noexcept;
  // Removes all waiters of one listener, and the jobs that have no other waiter.
  Waiters TakeWaiters(const RowListener& listener) noexcept;
  // Removes the waiters of cancelled requests. Each call checks a bounded number of listeners;
  // several calls check all.
  Waiters TakeCancelled() noexcept;

  // How many of the tenant's jobs a new row would follow, `later` positions after its current one;
  // at most `most`, which bounds the work.
  size_t Ahead(std::string_view tenant, uint64_t later, size_t most) const noexcept;

  bool empty() const { return size() == 0; }
  size_t size() const { return size_; }
  size_t sequences() const { return sequences_; }  // that their rows have in a step of a loop
  Job* First() noexcept;

 private:
  using Listeners = std::unordered_map<const RowListener*, Waiter*>;  // its first waiter

  TenantJobs& JobsOf(std::string_view tenant);
  bool CollectDebt(TenantJobs* tenant) noexcept;
  void ForgetEven() noexcept;
  void AdvanceTime() noexcept;
  void Settle(TenantJobs* tenant) noexcept;
  Job* FindEqual(const CheckedRow& row, const TenantJobs& tenant, size_t hash) noexcept;
  Job* Insert(CheckedRow row, TenantJobs* tenant, size_t hash, uint64_t position);
  Job Remove(Job* job) noexcept;
  void MoveForward(Job* job, uint64_t position) noexcept;
  void Link(Waiter* waiter, Waiter** first) noexcept;
  void Unlink(Waiter* waiter) noexcept;
  const RowListener* FindCancelled(size_t bucket) const noexcept;

  // Tenants that have waiting rows or are ahead of their share, by name.
  std::map<std::string_view, std::unique_ptr<TenantJobs>> tenants_;
  TenantOrder waiting_;  // those with jobs
  TenantOrder narrow_;   // with narrow jobs
  TenantOrder idle_;     // without jobs
  uint64_t time_ = 0;    // virtual: the start of the first job
  uint64_t lulls_ = 0;   // how often a row came when none waited
  size_t size_ = 0;
  std::unordered_multimap<size_t, Job*> by_hash_;  // jobs that equal rows may join, by hash
  Listeners listeners_;
  size_t next_asked_ = 0;  // next bucket of listeners_ to check, modulo their number
  size_t sequences_ = 0;
  uint64_t number_ = 0;  // number of the next job, for its Place
};

}  // namespace ct2triton
