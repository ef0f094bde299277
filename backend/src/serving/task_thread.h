// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace ct2triton {

// Runs tasks on a thread of its own, in the order in which they were posted.
class TaskThread {
 public:
  using Task = std::function<void()>;  // throws nothing

  // Throws Error if no thread can be started.
  TaskThread();
  // Runs the remaining tasks.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Throws std::bad_alloc.
  void Post(Task task);
  size_t waiting() const;  // tasks

 private:
  void Run();

  mutable std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Task> tasks_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ct2triton
