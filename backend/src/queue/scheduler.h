// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/device.h"
#include "queue/core_shares.h"

namespace ct2triton {

// The decoding threads of the machine: as many as cores, shared by all workloads; or one for a
// model on a GPU, since CTranslate2 binds what is on a GPU to the thread that made it. A free
// thread takes the task that CoreShares chooses.
class Scheduler {
 public:
  // The one for the cores of this process; it ends with the last workload that uses it.
  static std::shared_ptr<Scheduler> OfMachine();

  // `device`: that the threads are bound to.
  explicit Scheduler(size_t threads, const Device& device = {});
  ~Scheduler();  // no workload may be left

  // Workloads of one `model` have the share of one.
  void Add(Workload* work, const void* model);
  // Removes a workload, when all of its rows are answered.
  void Drain(Workload* work) noexcept;

  // Rows have come or gone. Not under a lock that a workload takes in Run.
  void Wake(Workload* work) noexcept;

  size_t threads() const { return threads_.size(); }
  const Device& device() const { return device_; }
  // What its threads use must be made on them.
  bool OnGpu() const { return device_.kind == Device::Kind::kGpu; }
  uint64_t BusyTime_ns(const Workload* work) const;  // that threads spent on its tasks

 private:
  void Work();
  void StopThreads() noexcept;

  const Device device_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable drained_;
  CoreShares shares_;
  size_t idle_threads_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ct2triton
