// SPDX-License-Identifier: Apache-2.0
#include "queue/scheduler.h"

#include <algorithm>

#include "engine/thread_scope.h"
#include "steady_clock.h"

namespace ct2triton {

std::shared_ptr<Scheduler> Scheduler::OfMachine() {
  static std::mutex mutex;
  static std::weak_ptr<Scheduler> running;
  const std::lock_guard<std::mutex> lock(mutex);
  auto scheduler = running.lock();
  if (!scheduler) running = scheduler = std::make_shared<Scheduler>(UsableCores());
  return scheduler;
}

Scheduler::Scheduler(size_t threads, const Device& device) : cores_(threads), device_(device) {
  try {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  } catch (...) {
    StopThreads();
    throw;
  }
}

Scheduler::~Scheduler() { StopThreads(); }

void Scheduler::StopThreads() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Scheduler::Add(Workload* work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  in_turn_.reserve(entries_.size() + 1);
  entries_.push_back(Entry{work});
}

void Scheduler::Drain(Workload* work) noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  released_.wait(lock, [work] { return !work->Active(); });
  entries_.remove_if([work](const Entry& entry) { return entry.work == work; });
}

void Scheduler::Wake() noexcept {
  { const std::lock_guard<std::mutex> lock(mutex_); }  // no thread is between looking and sleeping
  work_.notify_one();                                  // it wakes another where there is more to do
}

uint64_t Scheduler::BusyTime_ns(const Workload* work) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.work == work) return entry.busy_ns;
  }
  return 0;
}

void Scheduler::Work() {
  ThreadScope scope(device_, 1);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    Claimed claimed{};
    if (!ClaimNext(&claimed)) {
      if (stopping_) return;
      ++idle_threads_;
      scope.Idle();
      work_.wait(lock);
      --idle_threads_;
      continue;
    }
    Entry& entry = *claimed.entry;
    const size_t cores = entry.work->threads_per_piece();
    cores_in_use_ += cores;
    if (idle_threads_ > 0 && entry.work->Waiting()) work_.notify_one();
    lock.unlock();
    scope.SetThreads(cores);
    const uint64_t start_ns = SteadyNow_ns();
    entry.work->Run(claimed.piece);
    const uint64_t run_ns = SteadyNow_ns() - start_ns;
    lock.lock();
    cores_in_use_ -= cores;
    entry.busy_ns += run_ns;
    entry.turn_ns += run_ns * cores;
    entry.work->Release(claimed.piece);
    if (idle_threads_ > 0 && entry.work->Waiting()) work_.notify_one();
    if (!entry.work->Active()) released_.notify_all();
  }
}

bool Scheduler::ClaimNext(Claimed* claimed) noexcept {
  SortByTurn();
  return ClaimInTurn(/*spare=*/false, claimed) || ClaimInTurn(/*spare=*/true, claimed);
}

// A workload that had nothing to do has saved up no time.
void Scheduler::SortByTurn() noexcept {
  in_turn_.clear();
  uint64_t least_ns = UINT64_MAX;
  for (Entry& entry : entries_) {
    if (entry.active) least_ns = std::min(least_ns, entry.turn_ns);
  }
  for (Entry& entry : entries_) {
    const bool was_active = entry.active;
    entry.active = entry.work->Active();
    if (!entry.active) continue;
    if (!was_active && least_ns != UINT64_MAX) entry.turn_ns = std::max(entry.turn_ns, least_ns);
    in_turn_.push_back(&entry);
  }
  std::sort(in_turn_.begin(), in_turn_.end(),
            [](const Entry* a, const Entry* b) { return a->turn_ns < b->turn_ns; });
}

bool Scheduler::ClaimInTurn(bool spare, Claimed* claimed) noexcept {
  const size_t lanes = std::max<size_t>(1, cores_ / std::max<size_t>(1, in_turn_.size()));
  for (Entry* entry : in_turn_) {
    const size_t cores = entry->work->threads_per_piece();
    if (cores_in_use_ > 0 && cores_in_use_ + cores > cores_) continue;
    claimed->piece = entry->work->Claim(std::max<size_t>(1, lanes / cores), spare);
    claimed->entry = entry;
    if (claimed->piece >= 0) return true;
  }
  return false;
}

}  // namespace ct2triton
