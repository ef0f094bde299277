// SPDX-License-Identifier: Apache-2.0
#include "serving/deadline_clock.h"

#include <chrono>

#include "steady_clock.h"

namespace ct2triton {
namespace {

constexpr uint64_t kMemoryWait_ns = 1'000'000;

}  // namespace

std::shared_ptr<DeadlineClock> DeadlineClock::OfProcess() {
  static std::mutex mutex;
  static std::weak_ptr<DeadlineClock> running;
  const std::lock_guard<std::mutex> lock(mutex);
  auto clock = running.lock();
  if (!clock) running = clock = std::make_shared<DeadlineClock>();
  return clock;
}

DeadlineClock::DeadlineClock() : thread_([this] { Run(); }) {}

DeadlineClock::~DeadlineClock() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

DeadlineClock::Ticket DeadlineClock::Watch(uint64_t at_ns, std::weak_ptr<Expiring> request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Ticket ticket(at_ns, ++number_);
  watched_.emplace(ticket, std::move(request));
  if (watched_.begin()->first == ticket) changed_.notify_one();
  return ticket;
}

void DeadlineClock::Forget(const Ticket& ticket) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  watched_.erase(ticket);
}

void DeadlineClock::Run() noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ends_) {
    const uint64_t now_ns = SteadyNow_ns();
    if (watched_.empty()) {
      changed_.wait(lock);
    } else if (const uint64_t at_ns = watched_.begin()->first.first; at_ns > now_ns) {
      changed_.wait_for(lock, std::chrono::nanoseconds(at_ns - now_ns));
    } else {
      auto watched = watched_.extract(watched_.begin());
      auto request = watched.mapped().lock();
      lock.unlock();
      const bool ended = !request || request->Expire();
      request.reset();  // its destructor may call Forget
      lock.lock();
      if (ended) continue;
      watched.key().first = now_ns + kMemoryWait_ns;
      watched_.insert(std::move(watched));  // allocates no memory
    }
  }
}

}  // namespace ct2triton
