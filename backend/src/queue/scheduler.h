// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/device.h"

namespace ct2triton {

// Something that threads work on, one piece at a time: a step of a loop, or a call.
class Workload {
 public:
  virtual ~Workload() = default;

  // All but Run are called under the scheduler's lock, and are short.

  // Claims the next piece that may run now: its number, or -1 if there is none. `lanes`: how many
  // may run side by side while other workloads want threads too. `spare`: the thread would be idle
  // otherwise, so that one more may run.
  virtual int Claim(size_t lanes, bool spare) noexcept = 0;
  // Runs the claimed piece, on a thread of the scheduler, without its lock.
  virtual void Run(int piece) noexcept = 0;
  virtual void Release(int piece) noexcept = 0;

  virtual bool Active() const noexcept = 0;   // rows wait or run
  virtual bool Waiting() const noexcept = 0;  // rows wait
  // Threads that a piece computes with.
  virtual size_t threads_per_piece() const noexcept = 0;
};

// The decoding threads of the machine: as many as cores, shared by all workloads; or one for a
// model on a GPU, since CTranslate2 binds what is on a GPU to the thread that made it. A free
// thread takes a piece of the workload that has had the least time of those with work (start-time
// fair queueing: Goyal, Vin and Cheng, 1996).
class Scheduler {
 public:
  // The one for the cores of this process; it ends with the last workload that uses it.
  static std::shared_ptr<Scheduler> OfMachine();

  // `device`: that the threads are bound to.
  explicit Scheduler(size_t threads, const Device& device = {});
  ~Scheduler();  // no workload may be left

  void Add(Workload* work);
  // Returns when all of its rows are answered. Afterwards the scheduler knows it no more.
  void Drain(Workload* work) noexcept;

  // Rows have come. Not under a lock that a workload takes in Claim.
  void Wake() noexcept;

  size_t threads() const { return threads_.size(); }
  const Device& device() const { return device_; }
  // What its threads use is to be made on them.
  bool OnGpu() const { return device_.kind == Device::Kind::kGpu; }
  uint64_t BusyTime_ns(const Workload* work) const;  // that threads spent on its pieces

 private:
  struct Entry {
    Workload* work;
    uint64_t busy_ns = 0;
    uint64_t turn_ns = 0;  // whose turn it is: the least goes first
    bool active = false;
  };
  struct Claimed {
    Entry* entry;
    int piece;
  };

  void Work();
  bool ClaimNext(Claimed* claimed) noexcept;
  bool ClaimInTurn(bool spare, Claimed* claimed) noexcept;
  void SortByTurn() noexcept;
  void StopThreads() noexcept;

  const size_t cores_;
  const Device device_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable released_;
  std::list<Entry> entries_;
  std::vector<Entry*> in_turn_;  // the active ones; has room for all
  size_t cores_in_use_ = 0;
  size_t idle_threads_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ct2triton
