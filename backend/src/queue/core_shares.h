// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace ct2triton {

// Something that threads work on, one task at a time: a step of a loop, or a call.
class Workload {
 public:
  virtual ~Workload() = default;

  // All but Run are called under the scheduler's lock, take no lock, and are short.

  // The next task that may run now: its number, or -1 if there is none. `lanes`: how many may run
  // at the same time while other workloads want threads too. `spare`: one more may run, because the
  // thread has nothing else to do.
  virtual int Next(size_t lanes, bool spare) const noexcept = 0;
  // Starts the task that Next returned.
  virtual void Claim(int task, size_t lanes) noexcept = 0;
  // Runs the claimed task, on a thread of the scheduler, without its lock.
  virtual void Run(int task) noexcept = 0;
  virtual void Release(int task) noexcept = 0;

  virtual bool Active() const noexcept = 0;  // whether rows wait or run
  // Cores that a task computes with.
  virtual size_t cores_per_task() const noexcept = 0;
  // Idle threads that may help with a task (engine/team.h), at most.
  virtual size_t most_helpers() const noexcept { return 0; }
};

// Chooses the workload that gets free cores: of the models with work, the one that has used the
// least time (start-time fair queueing: Goyal, Vin and Cheng, 1996), and of its workloads the one
// that has used the least. If that needs more cores than are free, they are reserved for it. Pure:
// uses no threads and no clock.
class CoreShares {
 private:
  struct Model;
  struct Work {
    Workload* work;
    Model* model;
    uint64_t busy_ns = 0;
    uint64_t used_ns = 0;  // time x cores; the least goes first
    bool active = false;
  };

 public:
  // A task that may start.
  struct Task {
    Work* of = nullptr;
    int number = -1;
    size_t lanes = 1;

    explicit operator bool() const { return of != nullptr; }
    Workload* work() const { return of->work; }
    size_t cores() const { return work()->cores_per_task(); }
  };

  explicit CoreShares(size_t cores) : cores_(cores) {}

  // Workloads with the same `model` share one model's share.
  void Add(Workload* work, const void* model);
  void Remove(Workload* work) noexcept;  // it must not be active
  // Call when it may have become active or inactive.
  void Update(Workload* work) noexcept;

  // The task to start now; no task: none may start.
  Task Next() const noexcept;
  void Claim(const Task& task) noexcept;
  void Release(const Task& task, uint64_t run_ns) noexcept;

  uint64_t BusyTime_ns(const Workload* work) const;  // spent on its tasks; 0 if it is unknown
  size_t free_cores() const noexcept { return cores_ - std::min(cores_, cores_in_use_); }

 private:
  struct Model {
    const void* name;
    std::list<Work> works;  // least used first
    size_t active_works = 0;
    uint64_t used_ns = 0;
  };

  void Update(Work* work) noexcept;
  void Activate(Work* work) noexcept;
  void Leave(Model* model) noexcept;
  void Sort(Model* model) noexcept;
  Task TaskOf(Work* work, bool spare) const noexcept;
  bool Fits(const Task& task) const noexcept;

  const size_t cores_;
  std::list<Model> models_;
  std::unordered_map<const Workload*, Work*> works_;
  std::vector<Model*> in_order_;  // those with active work, least used first; room for all
  size_t cores_in_use_ = 0;
  uint64_t most_used_ns_ = 0;  // by any model
};

}  // namespace ct2triton
