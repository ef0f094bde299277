// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  // side by side while other workloads want threads too. `spare`: the thread would be idle
  // otherwise, so that one more may run.
  virtual int Next(size_t lanes, bool spare) const noexcept = 0;
  // The task that Next gave starts.
  virtual void Claim(int task, size_t lanes) noexcept = 0;
  // Runs the claimed task, on a thread of the scheduler, without its lock.
  virtual void Run(int task) noexcept = 0;
  virtual void Release(int task) noexcept = 0;

  virtual bool Active() const noexcept = 0;  // rows wait or run
  // Cores that a task computes with.
  virtual size_t cores_per_task() const noexcept = 0;
};

// Chooses the workload that gets free cores: of the models with work, the one that has used the
// least time (start-time fair queueing: Goyal, Vin and Cheng, 1996), and of its workloads the one
// that has used the least. For work that needs more cores than are free, they are reserved. Pure:
// knows no threads and no clock.
class CoreShares {
 private:
  struct Model;
  struct Work {
    Workload* work;
    Model* model;
    uint64_t busy_ns = 0;
    uint64_t used_ns = 0;  // times the cores; the least goes first
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

  // Workloads of one `model` have the share of one.
  void Add(Workload* work, const void* model);
  void Remove(Workload* work) noexcept;  // it is not active
  // It may have become active, or ceased to be.
  void Update(Workload* work) noexcept;

  // None: nothing may start now.
  Task Next() const noexcept;
  void Claim(const Task& task) noexcept;
  void Release(const Task& task, uint64_t run_ns) noexcept;

  uint64_t BusyTime_ns(const Workload* work) const;  // spent on its tasks; 0 if it is not known

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
  std::vector<Model*> in_order_;  // those with active work, least used first; has room for all
  size_t cores_in_use_ = 0;
  uint64_t most_used_ns_ = 0;  // by any model
};

}  // namespace ct2triton
