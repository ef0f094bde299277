// SPDX-License-Identifier: Apache-2.0
#include "engine/team.h"

#include <sched.h>

#include <algorithm>

#include "steady_clock.h"

namespace ct2triton {
namespace {

// More parts than members, so that all end at about the same time.
constexpr size_t kPartsPerMember = 8;
// A helper stays this long without work: about the time between two steps.
constexpr uint64_t kPatience_ns = 200'000;
// The owner waits for the last parts this long before it lets other threads have its core.
constexpr uint64_t kSpin_ns = 20'000;
// A part takes some microseconds. One that takes longer than this was interrupted.
constexpr uint64_t kInterrupted_ns = 300'000;
constexpr uint64_t kShortestPause_ns = 5'000'000;
constexpr uint64_t kLongestPause_ns = 320'000'000;
constexpr size_t kSpins = 64;  // between two readings of the clock

inline void Pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

thread_local Team* Team::current_ = nullptr;

Team::Owner::Owner(Team* team) noexcept { current_ = team; }
Team::Owner::~Owner() { current_ = nullptr; }

size_t Team::Wanted(uint64_t now_ns) const noexcept {
  if (idle_ || now_ns < alone_until_ns_) return 0;
  return limit_ - std::min<size_t>(limit_, helpers_);
}

bool Team::HasHelpers() const noexcept {
  if (std::min<size_t>(limit_, helpers_) == 0) return false;
  return alone_until_ns_ == 0 || SteadyNow_ns() >= alone_until_ns_;
}

void Team::Run(size_t units, size_t most_parts, Call call, const void* body) noexcept {
  const size_t members = std::min<size_t>(limit_, helpers_) + 1;
  call_ = call;
  body_ = body;
  units_ = units;
  parts_ = std::min(most_parts, kPartsPerMember * members);
  open_.store(parts_, std::memory_order_relaxed);
  unclaimed_.store(parts_, std::memory_order_release);
  TakeParts(0);
  WaitForOthers();
}

void Team::TakeParts(size_t member) noexcept {
  size_t left = unclaimed_.load(std::memory_order_relaxed);
  while (left > 0) {
    if (!unclaimed_.compare_exchange_weak(left, left - 1, std::memory_order_acquire,
                                          std::memory_order_relaxed)) {
      continue;
    }
    const size_t part = parts_ - left;
    call_(body_, units_ * part / parts_, units_ * (part + 1) / parts_, member);
    if (member > 0) parts_by_helpers_.fetch_add(1, std::memory_order_relaxed);
    open_.fetch_sub(1, std::memory_order_release);
    left = unclaimed_.load(std::memory_order_relaxed);
  }
}

void Team::WaitForOthers() noexcept {
  if (open_.load(std::memory_order_acquire) == 0) return;
  const uint64_t start_ns = SteadyNow_ns();
  uint64_t waited_ns = 0;
  while (open_.load(std::memory_order_acquire) > 0) {
    if (waited_ns > kSpin_ns) {
      sched_yield();
    } else {
      for (size_t i = 0; i < kSpins && open_.load(std::memory_order_relaxed) > 0; ++i) Pause();
    }
    waited_ns = SteadyNow_ns() - start_ns;
  }
  if (waited_ns < kInterrupted_ns || eager_) return;
  // Each pause that soon follows another is twice as long.
  const uint64_t now_ns = start_ns + waited_ns;
  const bool soon = pause_ns_ > 0 && now_ns < paused_ns_ + 4 * pause_ns_;
  pause_ns_ = soon ? std::min(2 * pause_ns_, kLongestPause_ns) : kShortestPause_ns;
  paused_ns_ = now_ns;
  alone_until_ns_.store(now_ns + pause_ns_, std::memory_order_relaxed);
}

size_t Team::Join() noexcept {
  for (size_t member = 1; member < most_; ++member) {
    if (!taken_[member].exchange(true, std::memory_order_acquire)) {
      ++helpers_;
      return member;
    }
  }
  return 0;
}

void Team::Help(size_t member, const std::atomic<bool>& leave) noexcept {
  uint64_t idle_since_ns = SteadyNow_ns();
  for (size_t spins = 0; !leave.load(std::memory_order_relaxed); ++spins) {
    if (unclaimed_.load(std::memory_order_relaxed) > 0 && member <= limit_) {
      TakeParts(member);
      idle_since_ns = SteadyNow_ns();
      continue;
    }
    Pause();
    if (spins % kSpins == 0 && SteadyNow_ns() - idle_since_ns > kPatience_ns) {
      idle_ = true;
      break;
    }
  }
  --helpers_;
  taken_[member].store(false, std::memory_order_release);
}

}  // namespace ct2triton
