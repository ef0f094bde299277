// SPDX-License-Identifier: Apache-2.0
#include "queue/scheduler.h"

#include <algorithm>

#include "engine/calls/thread_scope.h"
#include "engine/usable_cores.h"
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

Scheduler::Scheduler(size_t threads, const Device& device) : device_(device), shares_(threads) {
  try {
    for (size_t i = 0; i < threads; ++i) teams_.emplace_back(threads);
    for (Team& team : teams_) threads_.emplace_back([this, &team] { Work(&team); });
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
    recall_ = true;
  }
  work_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Scheduler::Add(Workload* work, const void* model) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shares_.Add(work, model);
}

void Scheduler::Drain(Workload* work) noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  drained_.wait(lock, [work] { return !work->Active(); });
  shares_.Remove(work);
}

void Scheduler::Wake(Workload* work) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  shares_.Update(work);
  if (!work->Active()) drained_.notify_all();
  CallThread();
}

uint64_t Scheduler::BusyTime_ns(const Workload* work) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return shares_.BusyTime_ns(work);
}

// For a task that may start, if there is one.
void Scheduler::CallThread() noexcept {
  if (idle_threads_ + helping_threads_ == 0 || !shares_.Next()) return;
  if (idle_threads_ > 0) return work_.notify_one();
  recall_ = true;
}

void Scheduler::CallHelpers(const Team& team) noexcept {
  if (idle_threads_ == 0) return;
  size_t count = std::min({team.Wanted(SteadyNow_ns()), free_cores(), idle_threads_});
  for (; count > 0; --count) work_.notify_one();
}

size_t Scheduler::free_cores() const noexcept {
  return shares_.free_cores() - std::min(shares_.free_cores(), helping_threads_);
}

// Helps the team that has the fewest helpers of those that want some; false: none does.
bool Scheduler::Help(std::unique_lock<std::mutex>* lock) noexcept {
  if (free_cores() == 0) return false;
  const uint64_t now_ns = SteadyNow_ns();
  Team* chosen = nullptr;
  for (Team& team : teams_) {
    const bool fewer = chosen == nullptr || team.helpers() < chosen->helpers();
    if (fewer && team.Wanted(now_ns) > 0) chosen = &team;
  }
  const size_t member = chosen == nullptr ? 0 : chosen->Join();
  if (member == 0) return false;
  ++helping_threads_;
  lock->unlock();
  chosen->Help(member, recall_);
  lock->lock();
  --helping_threads_;
  return true;
}

void Scheduler::Work(Team* team) {
  ThreadScope scope(device_, 1);
  const Team::Owner owner(team);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    const CoreShares::Task task = shares_.Next();
    if (!task) {
      if (stopping_) return;
      recall_ = false;
      if (Help(&lock)) continue;
      ++idle_threads_;
      scope.Idle();
      work_.wait(lock);
      --idle_threads_;
      continue;
    }
    shares_.Claim(task);
    team->Limit(task.work()->most_helpers());
    CallThread();
    CallHelpers(*team);
    lock.unlock();
    scope.SetThreads(task.cores());
    const uint64_t start_ns = SteadyNow_ns();
    task.work()->Run(task.number);
    const uint64_t run_ns = SteadyNow_ns() - start_ns;
    lock.lock();
    team->Limit(0);
    shares_.Release(task, run_ns);
    if (!task.work()->Active()) drained_.notify_all();
  }
}

}  // namespace ct2triton
