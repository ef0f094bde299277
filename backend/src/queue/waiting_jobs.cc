// SPDX-License-Identifier: Apache-2.0
#include "queue/waiting_jobs.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace ct2triton {
namespace {

// Rows of one hash that differ in options which it does not cover. Further ones run by themselves.
constexpr size_t kMostOfHash = 8;

constexpr size_t kBucketsAsked = 1024;

// Known at once; further ones share the place of those without a name.
constexpr size_t kMostTenants = 1024;

// What a row of no tokens costs, in tokens of one sequence.
constexpr size_t kTokensOfRow = 8;

size_t Mixed(size_t hash, size_t value) { return (hash ^ value) * 0x9E3779B97F4A7C15U; }

size_t HashIds(const Ids& ids) {
  const std::string_view bytes(reinterpret_cast<const char*>(ids.data()),
                               ids.size() * sizeof(ids[0]));
  return std::hash<std::string_view>()(bytes);
}

size_t HashRow(const CheckedRow& row) {
  size_t hash = HashIds(row.source);
  hash = Mixed(hash, HashIds(row.prefix));
  hash = Mixed(hash, HashIds(row.draft));
  hash = Mixed(hash, static_cast<size_t>(row.limit_tokens));
  hash = Mixed(hash, static_cast<size_t>(row.copies));
  if (row.options) hash = Mixed(hash, static_cast<size_t>(row.options->sampling_seed));
  return hash;
}

uint64_t Cost(const CheckedRow& row) {
  return static_cast<size_t>(row.copies) * (kTokensOfRow + row.source.size());
}

}  // namespace

TenantJobs::Jobs::iterator* TenantJobs::Next(bool only_narrow) noexcept {
  const bool has_narrow = next_narrow != narrow.end();
  const bool has_wide = !only_narrow && next_wide != wide.end();
  if (has_wide && (!has_narrow || next_wide->first < next_narrow->first)) return &next_wide;
  return has_narrow ? &next_narrow : nullptr;
}

WaitingJobs::Cursor::Cursor(WaitingJobs* jobs) noexcept : jobs_(*jobs) {
  std::optional<uint64_t> first;
  for (auto& [name, tenant] : jobs_.tenants_) {
    tenant.next_narrow = tenant.narrow.begin();
    tenant.next_wide = tenant.wide.begin();
    tenant.next_start = tenant.start;
    if (!tenant.empty()) first = std::min(first.value_or(tenant.start), tenant.start);
  }
  jobs_.time_ = std::max(jobs_.time_, first.value_or(0));
}

Job* WaitingJobs::Cursor::Next(bool only_narrow) noexcept {
  TenantJobs* of = nullptr;
  for (auto& [name, tenant] : jobs_.tenants_) {
    if (of != nullptr && of->next_start <= tenant.next_start) continue;
    if (tenant.Next(only_narrow) != nullptr) of = &tenant;
  }
  if (of == nullptr) return nullptr;
  Job* const job = &((*of->Next(only_narrow))++)->second;
  of->next_start += Cost(job->row);
  return job;
}

// While no row waits, no tenant has had more than its share.
TenantJobs& WaitingJobs::JobsOf(std::string_view name) {
  if (empty()) {
    tenants_.clear();
    time_ = 0;
  }
  auto known = tenants_.find(name);
  if (known == tenants_.end()) {
    for (auto it = tenants_.begin(); it != tenants_.end();) {
      const bool even = it->second.empty() && it->second.start <= time_;
      it = even ? tenants_.erase(it) : std::next(it);
    }
    known = tenants_.try_emplace(tenants_.size() < kMostTenants ? std::string(name) : "").first;
  }
  TenantJobs& tenant = known->second;
  if (tenant.empty()) tenant.start = std::max(tenant.start, time_);
  return tenant;
}

void WaitingJobs::Add(CheckedRow row, Waiter waiter, std::string_view name, uint64_t later) {
  TenantJobs& tenant = JobsOf(name);
  const uint64_t turn = tenant.turn + later;
  Waiters added;
  added.push_back(std::move(waiter));
  Waiter& one = added.front();
  one.self = added.begin();
  const size_t hash = Mixed(HashRow(row), reinterpret_cast<uintptr_t>(&tenant));
  const auto [listener, is_new] = listeners_.try_emplace(one.listener.get(), nullptr);
  try {
    one.job = FindEqual(row, tenant, hash);
    if (one.job == nullptr) one.job = Insert(std::move(row), &tenant, hash, turn);
  } catch (...) {
    if (is_new) listeners_.erase(listener);
    throw;
  }
  one.job->waiters.splice(one.job->waiters.end(), added);
  Link(&one, &listener->second);
  MoveForward(one.job, turn);
}

Job* WaitingJobs::FindEqual(const CheckedRow& row, const TenantJobs& tenant, size_t hash) noexcept {
  if (!row.repeatable) return nullptr;
  const auto [begin, end] = by_hash_.equal_range(hash);
  const auto equal = std::find_if(begin, end, [&](const auto& known) {
    return known.second->tenant == &tenant && EqualRows(known.second->row, row);
  });
  return equal == end ? nullptr : equal->second;
}

Job* WaitingJobs::Insert(CheckedRow row, TenantJobs* tenant, size_t hash, uint64_t turn) {
  TenantJobs::Jobs one;
  const Place place(turn, ++number_);
  Job& job = one.try_emplace(place, Job{std::move(row), {}, tenant, hash, place}).first->second;
  if (job.row.repeatable && by_hash_.count(hash) < kMostOfHash) by_hash_.emplace(hash, &job);
  sequences_ += static_cast<size_t>(job.row.copies);
  ++size_;
  tenant->Of(job.row).insert(one.extract(one.begin()));  // takes no memory
  return &job;
}

// An equal row with an earlier place has come: its request does not wait longer than for a row of
// its own.
void WaitingJobs::MoveForward(Job* job, uint64_t turn) noexcept {
  if (turn >= job->place.first) return;
  TenantJobs::Jobs& jobs = job->tenant->Of(job->row);
  auto node = jobs.extract(job->place);
  node.key() = job->place = {turn, ++number_};
  jobs.insert(std::move(node));
}

Job WaitingJobs::Take(Job* job) noexcept {
  for (Waiter& waiter : job->waiters) Unlink(&waiter);
  TenantJobs& tenant = *job->tenant;
  tenant.turn = std::max(tenant.turn + 1, job->place.first);
  tenant.start += Cost(job->row);
  return Remove(job);
}

Job WaitingJobs::Remove(Job* job) noexcept {
  const auto [begin, end] = by_hash_.equal_range(job->hash);
  const auto known =
      std::find_if(begin, end, [job](const auto& entry) { return entry.second == job; });
  if (known != end) by_hash_.erase(known);
  sequences_ -= static_cast<size_t>(job->row.copies);
  --size_;
  return std::move(job->tenant->Of(job->row).extract(job->place).mapped());
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
