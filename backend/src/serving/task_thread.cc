// SPDX-License-Identifier: Apache-2.0
#include "serving/task_thread.h"

#include <utility>

namespace ct2triton {

TaskThread::TaskThread() : thread_([this] { Run(); }) {}

TaskThread::~TaskThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
    posted_.notify_one();
  }
  thread_.join();
}

void TaskThread::Post(Task task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  tasks_.push_back(std::move(task));
  posted_.notify_one();
}

size_t TaskThread::waiting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return tasks_.size();
}

void TaskThread::Run() {
  for (;;) {
    Task task;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      posted_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace ct2triton
