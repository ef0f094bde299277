// SPDX-License-Identifier: Apache-2.0
#include "queue/gpu_workers.h"

#include <utility>

#include "engine/calls/thread_scope.h"
#include "error.h"
#include "queue/run_call.h"

namespace ct2triton {

GpuWorkers::GpuWorkers(std::shared_ptr<const CallModel> model, const Device& device,
                       const WorkSettings& settings)
    : model_(std::move(model)), device_(device), settings_(settings), queue_([this] {
        { const std::lock_guard<std::mutex> lock(mutex_); }  // no thread is about to sleep
        work_.notify_all();
      }) {
  std::vector<std::promise<void>> started(settings_.inter_threads);
  try {
    for (auto& promise : started) {
      threads_.emplace_back([this, &promise] { Work(&promise); });
    }
    for (auto& promise : started) promise.get_future().get();
  } catch (...) {
    StopWorkers();  // the threads hold references to `started`
    throw;
  }
}

GpuWorkers::~GpuWorkers() { StopWorkers(); }

void GpuWorkers::StopWorkers() noexcept {
  queue_.Close();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void GpuWorkers::Work(std::promise<void>* started) {
  std::unique_ptr<ThreadScope> scope;  // destroyed last, on this thread
  std::unique_ptr<CallEngine> engine;
  try {
    scope = std::make_unique<ThreadScope>(device_, settings_.intra_threads);
    engine = model_->NewEngine();
    started->set_value();
  } catch (...) {
    started->set_exception(std::current_exception());
    return;
  }
  while (WaitForRows()) {
    try {
      auto jobs = queue_.TakeCall(settings_.bounds, settings_.inter_threads);
      if (!jobs.empty()) RunCall(engine.get(), &queue_, std::move(jobs));
    } catch (...) {  // no memory to choose rows: fails one, so the queue gets shorter
      queue_.FailFirst(OutOfMemory());
    }
    if (queue_.size() == 0) scope->Idle();
  }
}

bool GpuWorkers::WaitForRows() {
  std::unique_lock<std::mutex> lock(mutex_);
  work_.wait(lock, [this] { return queue_.size() > 0 || queue_.closed(); });
  return queue_.size() > 0;
}

}  // namespace ct2triton
