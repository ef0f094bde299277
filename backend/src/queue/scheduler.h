// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/device.h"
#include "engine/team.h"
#include "queue/core_shares.h"

namespace ct2triton {

// The decoding threads of the machine: as many as cores, shared by all workloads. A model on a GPU
// has one thread, because CTranslate2 binds objects on a GPU to the thread that made them. A free
// thread takes the task that CoreShares chooses. While there is none, it helps a thread whose task
// welcomes helpers; it leaves between two parts of a computation as soon as there is a task.
class Scheduler {
 public:
  // The one for the cores of this process; it ends with its last workload.
  static std::shared_ptr<Scheduler> OfMachine();

  // `device`: the threads are bound to it.
  explicit Scheduler(size_t threads, const Device& device = {});
  ~Scheduler();  // all workloads must have been removed

  // Workloads with the same `model` share one model's share.
  void Add(Workload* work, const void* model);
  // Waits until all rows of a workload are answered, then removes it.
  void Drain(Workload* work) noexcept;

  // Call when rows were added or removed, without holding a lock that a workload takes in Run.
  void Wake(Workload* work) noexcept;

  size_t threads() const { return threads_.size(); }
  const Device& device() const { return device_; }
  // On a GPU, objects that its threads use must be made on them.
  bool OnGpu() const { return device_.kind == Device::Kind::kGpu; }
  uint64_t BusyTime_ns(const Workload* work) const;  // spent on its tasks

 private:
  void Work(Team* team);
  void CallThread() noexcept;
  void CallHelpers(const Team& team) noexcept;
  bool Help(std::unique_lock<std::mutex>* lock) noexcept;
  size_t free_cores() const noexcept;
  void StopThreads() noexcept;

  const Device device_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable drained_;
  CoreShares shares_;
  size_t idle_threads_ = 0;
  size_t helping_threads_ = 0;
  std::atomic<bool> recall_{false};  // a task waits for a helping thread
  bool stopping_ = false;
  std::list<Team> teams_;  // of each thread
  std::vector<std::thread> threads_;
};

}  // namespace ct2triton
