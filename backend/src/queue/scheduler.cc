// SPDX-License-Identifier: Apache-2.0
#include "queue/scheduler.h"

#include "engine/thread_scope.h"
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
  if (idle_threads_ > 0 && shares_.Next()) work_.notify_one();
}

uint64_t Scheduler::BusyTime_ns(const Workload* work) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return shares_.BusyTime_ns(work);
}

void Scheduler::Work() {
  ThreadScope scope(device_, 1);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    const CoreShares::Task task = shares_.Next();
    if (!task) {
      if (stopping_) return;
      ++idle_threads_;
      scope.Idle();
      work_.wait(lock);
      --idle_threads_;
      continue;
    }
    shares_.Claim(task);
    if (idle_threads_ > 0 && shares_.Next()) work_.notify_one();
    lock.unlock();
    scope.SetThreads(task.cores());
    const uint64_t start_ns = SteadyNow_ns();
    task.work()->Run(task.number);
    const uint64_t run_ns = SteadyNow_ns() - start_ns;
    lock.lock();
    shares_.Release(task, run_ns);
    if (!task.work()->Active()) drained_.notify_all();
  }
}

}  // namespace ct2triton
