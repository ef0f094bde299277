// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/device.h"
#include "queue/call_work.h"
#include "queue/row_queue.h"

namespace ct2triton {

// Threads of one model on a GPU. Each has an engine of its own, made, used and destroyed on that
// thread, because CTranslate2's CUDA contexts require it.
class GpuWorkers {
 public:
  // Throws Error when a worker cannot start.
  GpuWorkers(std::shared_ptr<const CallModel> model, const Device& device,
             const WorkSettings& settings);
  ~GpuWorkers();  // answers all waiting rows, then ends the threads

  RowQueue& queue() { return queue_; }

 private:
  void Work(std::promise<void>* started);
  bool WaitForRows();  // false: none will come
  void StopWorkers() noexcept;

  const std::shared_ptr<const CallModel> model_;
  const Device device_;
  const WorkSettings settings_;
  std::mutex mutex_;
  std::condition_variable work_;
  RowQueue queue_;
  std::vector<std::thread> threads_;
};

}  // namespace ct2triton
