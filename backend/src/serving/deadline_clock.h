// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace ct2triton {

// A request with a deadline.
class Expiring {
 public:
  virtual ~Expiring() = default;
  // Does not block. False if memory ran out; then it is called again.
  virtual bool Expire() noexcept = 0;
};

// Ends each request at its deadline. One thread for all models.
class DeadlineClock {
 public:
  using Ticket = std::pair<uint64_t, uint64_t>;  // deadline, and a unique number

  // The clock of this process; it ends with its last user. Throws std::system_error.
  static std::shared_ptr<DeadlineClock> OfProcess();

  DeadlineClock();
  ~DeadlineClock();
  DeadlineClock(const DeadlineClock&) = delete;
  DeadlineClock& operator=(const DeadlineClock&) = delete;

  // `at_ns`: of the steady clock.
  Ticket Watch(uint64_t at_ns, std::weak_ptr<Expiring> request);
  void Forget(const Ticket& ticket) noexcept;

 private:
  void Run() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Ticket, std::weak_ptr<Expiring>> watched_;
  uint64_t number_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ct2triton
