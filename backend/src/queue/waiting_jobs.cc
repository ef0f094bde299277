// SPDX-License-Identifier: Apache-2.0
#include "queue/waiting_jobs.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace ct2triton {
namespace {

// Most rows of one hash that differ in options which the hash does not cover. Further rows are not
// joined with equal ones.
constexpr size_t kMostOfHash = 8;

constexpr size_t kBucketsAsked = 1024;

// Most named tenants at once; further ones are treated as unnamed.
constexpr size_t kMostTenants = 1024;

size_t Mixed(size_t hash, size_t value) { return (hash ^ value) * 0x9E3779B97F4A7C15U; }

size_t HashRow(const CheckedRow& row) {
  size_t hash = HashIds(row.source);
  hash = Mixed(hash, HashIds(row.prefix));
  hash = Mixed(hash, HashIds(row.draft));
  hash = Mixed(hash, static_cast<size_t>(row.limit_tokens));
  hash = Mixed(hash, static_cast<size_t>(row.copies));
  if (row.options) hash = Mixed(hash, static_cast<size_t>(row.options->sampling_seed));
  return hash;
}

}  // namespace

TenantPlace::TenantPlace(TenantJobs* tenant, uint64_t number) {
  TenantOrder one;
  one.emplace(Place(0, number), tenant);
  node_ = one.extract(one.begin());
}

void TenantPlace::MoveTo(TenantOrder* order, uint64_t start) noexcept {
  if (order_ != nullptr) node_ = order_->extract(at_);
  order_ = order;
  if (order == nullptr) return;
  node_.key().first = start;
  at_ = order->insert(std::move(node_)).position;
}

WaitingJobs::Cursor::~Cursor() {
  for (TenantJobs* tenant = visited_; tenant != nullptr; tenant = tenant->visited_before) {
    tenant->visited = false;
    jobs_.Settle(tenant);
  }
}

void WaitingJobs::Cursor::Visit(TenantJobs* tenant) noexcept {
  tenant->visited = true;
  tenant->visited_before = visited_;
  visited_ = tenant;
  tenant->next_narrow = tenant->narrow.begin();
  tenant->next_wide = tenant->wide.begin();
  tenant->next_start = tenant->start;
}

Job* WaitingJobs::Cursor::NextOf(const TenantOrder& order) noexcept {
  while (!order.empty() && !order.begin()->second->visited) {
    if (!jobs_.CollectDebt(order.begin()->second)) break;
  }
  if (order.empty()) return nullptr;
  TenantJobs* const of = order.begin()->second;
  if (!of->visited) Visit(of);
  const bool has_narrow = of->next_narrow != of->narrow.end();
  const bool has_wide = &order != &jobs_.narrow_ && of->next_wide != of->wide.end();
  const bool wide = has_wide && (!has_narrow || of->next_wide->first < of->next_narrow->first);
  Job* const job = &(wide ? of->next_wide : of->next_narrow)++->second;
  of->next_start += LeastCost(job->row);
  const bool more_narrow = of->next_narrow != of->narrow.end();
  const bool more = more_narrow || of->next_wide != of->wide.end();
  of->place.MoveTo(more ? &jobs_.waiting_ : nullptr, of->next_start);
  of->narrow_place.MoveTo(more_narrow ? &jobs_.narrow_ : nullptr, of->next_start);
  return job;
}

Job* WaitingJobs::First() noexcept {
  AdvanceTime();
  return empty() ? nullptr : Cursor(this).Next();
}

void WaitingJobs::AdvanceTime() noexcept {
  if (!waiting_.empty()) time_ = std::max(time_, waiting_.begin()->first.first);
}

// Call after a tenant's jobs or its start have changed.
void WaitingJobs::Settle(TenantJobs* tenant) noexcept {
  if (tenant->visited) return;  // the cursor settles it when it ends
  tenant->place.MoveTo(tenant->empty() ? &idle_ : &waiting_, tenant->start);
  tenant->narrow_place.MoveTo(tenant->narrow.empty() ? nullptr : &narrow_, tenant->start);
}

// Moves the tenant's start by what its rows have cost since the last call. False: nothing.
bool WaitingJobs::CollectDebt(TenantJobs* tenant) noexcept {
  const uint64_t tokens = tenant->debt->tokens.exchange(0);
  tenant->start += tokens;
  if (tokens > 0) Settle(tenant);
  return tokens > 0;
}

// Forgets idle tenants that are not ahead of their share and have no rows that may add to it.
void WaitingJobs::ForgetEven() noexcept {
  for (auto it = idle_.begin(); it != idle_.end() && it->first.first <= time_;) {
    TenantJobs* const tenant = it->second;
    const auto next = std::next(it);
    if (tenant->debt.use_count() == 1 && tenant->debt->tokens == 0) {
      idle_.erase(it);
      tenants_.erase(tenant->name);
    }
    it = next;
  }
}

TenantJobs& WaitingJobs::JobsOf(std::string_view name) {
  // Once no row waits, no tenant is ahead of its share.
  if (empty()) {
    ++lulls_;
    if (!idle_.empty()) time_ = std::max(time_, idle_.rbegin()->first.first);
  }
  auto known = tenants_.find(name);
  if (known == tenants_.end()) {
    ForgetEven();
    if (tenants_.size() >= kMostTenants) known = tenants_.find(name = "");
  }
  if (known == tenants_.end()) {
    auto fresh = std::make_unique<TenantJobs>(name, ++number_);
    const std::string_view key = fresh->name;
    known = tenants_.emplace(key, std::move(fresh)).first;
  }
  TenantJobs& tenant = *known->second;
  if (std::exchange(tenant.lull, lulls_) != lulls_) tenant.debt->tokens = 0;
  if (tenant.empty())
    tenant.start = std::max(tenant.start, time_) + tenant.debt->tokens.exchange(0);
  Settle(&tenant);
  return tenant;
}

void WaitingJobs::Add(CheckedRow row, Waiter waiter, std::string_view name, uint64_t later) {
  TenantJobs& tenant = JobsOf(name);
  const uint64_t position = tenant.position + later;
  Waiters added;
  added.push_back(std::move(waiter));
  Waiter& one = added.front();
  one.self = added.begin();
  const size_t hash = Mixed(HashRow(row), reinterpret_cast<uintptr_t>(&tenant));
  const auto [listener, is_new] = listeners_.try_emplace(one.listener.get(), nullptr);
  try {
    one.job = FindEqual(row, tenant, hash);
    if (one.job == nullptr) one.job = Insert(std::move(row), &tenant, hash, position);
  } catch (...) {
    if (is_new) listeners_.erase(listener);
    throw;
  }
  one.job->waiters.splice(one.job->waiters.end(), added);
  Link(&one, &listener->second);
  MoveForward(one.job, position);
}

Job* WaitingJobs::FindEqual(const CheckedRow& row, const TenantJobs& tenant, size_t hash) noexcept {
  if (!row.repeatable) return nullptr;
  const auto [begin, end] = by_hash_.equal_range(hash);
  const auto equal = std::find_if(begin, end, [&](const auto& known) {
    return known.second->tenant == &tenant && EqualRows(known.second->row, row);
  });
  return equal == end ? nullptr : equal->second;
}

Job* WaitingJobs::Insert(CheckedRow row, TenantJobs* tenant, size_t hash, uint64_t position) {
  TenantJobs::Jobs one;
  const Place place(position, ++number_);
  Job& job = one.try_emplace(place, Job{std::move(row), {}, tenant, hash, place, tenant->debt})
                 .first->second;
  if (job.row.repeatable && by_hash_.count(hash) < kMostOfHash) by_hash_.emplace(hash, &job);
  sequences_ += static_cast<size_t>(job.row.copies);
  ++size_;
  tenant->Of(job.row).insert(one.extract(one.begin()));  // allocates no memory
  Settle(tenant);
  return &job;
}

// An equal row with an earlier position was added. Its request waits no longer than for a row of
// its own.
void WaitingJobs::MoveForward(Job* job, uint64_t position) noexcept {
  if (position >= job->place.first) return;
  TenantJobs::Jobs& jobs = job->tenant->Of(job->row);
  auto node = jobs.extract(job->place);
  node.key() = job->place = {position, ++number_};
  jobs.insert(std::move(node));
}

Job WaitingJobs::Take(Job* job) noexcept {
  for (Waiter& waiter : job->waiters) Unlink(&waiter);
  TenantJobs& tenant = *job->tenant;
  tenant.position = std::max(tenant.position + 1, job->place.first);
  tenant.start += LeastCost(job->row);
  return Remove(job);
}

Job WaitingJobs::Remove(Job* job) noexcept {
  const auto [begin, end] = by_hash_.equal_range(job->hash);
  const auto known =
      std::find_if(begin, end, [job](const auto& entry) { return entry.second == job; });
  if (known != end) by_hash_.erase(known);
  sequences_ -= static_cast<size_t>(job->row.copies);
  --size_;
  TenantJobs* const tenant = job->tenant;
  Job removed = std::move(tenant->Of(job->row).extract(job->place).mapped());
  Settle(tenant);
  return removed;
}

size_t WaitingJobs::Ahead(std::string_view name, uint64_t later, size_t most) const noexcept {
  auto known = tenants_.find(name);
  if (known == tenants_.end() && tenants_.size() >= kMostTenants) known = tenants_.find("");
  if (known == tenants_.end()) return 0;
  const TenantJobs& tenant = *known->second;
  size_t count = 0;
  for (const TenantJobs::Jobs* jobs : {&tenant.narrow, &tenant.wide}) {
    for (const auto& [place, job] : *jobs) {
      if (place.first > tenant.position + later || count == most) break;
      ++count;
    }
  }
  return count;
}

Waiters WaitingJobs::TakeWaiters(const RowListener& listener) noexcept {
  Waiters taken;
  const auto known = listeners_.find(&listener);
  if (known == listeners_.end()) return taken;
  for (Waiter* waiter = known->second; waiter != nullptr; waiter = waiter->next) {
    Job* const job = waiter->job;
    taken.splice(taken.end(), job->waiters, waiter->self);
    if (job->waiters.empty()) Remove(job);
  }
  listeners_.erase(known);
  return taken;
}

Waiters WaitingJobs::TakeCancelled() noexcept {
  Waiters taken;
  const size_t buckets = listeners_.bucket_count();
  for (size_t i = 0; i < std::min(buckets, kBucketsAsked); ++i) {
    const size_t bucket = next_asked_++ % buckets;
    while (const RowListener* listener = FindCancelled(bucket)) {
      taken.splice(taken.end(), TakeWaiters(*listener));
    }
  }
  return taken;
}

const RowListener* WaitingJobs::FindCancelled(size_t bucket) const noexcept {
  const auto end = listeners_.end(bucket);
  const auto gone = std::find_if(listeners_.begin(bucket), end,
                                 [](const auto& known) { return known.first->Cancelled(); });
  return gone == end ? nullptr : gone->first;
}

void WaitingJobs::Link(Waiter* waiter, Waiter** first) noexcept {
  waiter->next = *first;
  if (waiter->next != nullptr) waiter->next->previous = waiter;
  *first = waiter;
}

void WaitingJobs::Unlink(Waiter* waiter) noexcept {
  if (waiter->next != nullptr) waiter->next->previous = waiter->previous;
  if (waiter->previous != nullptr) {
    waiter->previous->next = waiter->next;
  } else if (waiter->next != nullptr) {
    listeners_.find(waiter->listener.get())->second = waiter->next;
  } else {
    listeners_.erase(waiter->listener.get());
  }
}

}  // namespace ct2triton
