// SPDX-License-Identifier: Apache-2.0
#include "queue/model_work.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "engine/calls/thread_scope.h"

namespace ct2triton {

std::shared_ptr<ModelWork> ModelWork::Get(const LoadedModel& model, const WorkSettings& settings,
                                          const LoopSettings& loops) {
  static std::mutex mutex;
  static std::vector<std::weak_ptr<ModelWork>> works;
  const std::lock_guard<std::mutex> lock(mutex);
  works.erase(std::remove_if(works.begin(), works.end(), [](const auto& p) { return p.expired(); }),
              works.end());
  for (const auto& known : works) {
    auto work = known.lock();
    if (work && work->call_model_ == model.calls() && work->loop_model_ == model.loop() &&
        work->settings_ == settings && work->loop_settings_ == loops) {
      return work;
    }
  }
  auto work =
      std::make_shared<ModelWork>(model.calls(), model.loop(), model.device(), settings, loops);
  works.push_back(work);
  return work;
}

ModelWork::ModelWork(std::shared_ptr<CallModel> call_model,
                     std::shared_ptr<const LoopModel> loop_model, const Device& device,
                     const WorkSettings& settings, const LoopSettings& loops)
    : call_model_(std::move(call_model)),
      loop_model_(std::move(loop_model)),
      settings_(settings),
      loop_settings_(loops) {
  const bool on_gpu = device.kind == Device::Kind::kGpu;
  if (on_gpu && !loop_model_) {
    gpu_ = std::make_unique<GpuWorkers>(call_model_, device, settings);
    return;
  }
  scheduler_ = on_gpu ? std::make_shared<Scheduler>(1, device) : Scheduler::OfMachine();
  if (call_model_) calls_ = std::make_unique<CallWork>(call_model_, settings, scheduler_, this);
  if (!loop_model_) return;
  loops_ = std::make_unique<LoopWork>(loop_model_, loops, on_gpu ? 1 : settings.inter_threads,
                                      scheduler_, calls_.get(), this);
}

// Objects made on a thread of a GPU are destroyed on such a thread, if one can be started.
ModelWork::~ModelWork() {
  if (gpu_ || !OnGpu()) return;
  try {
    RunInThreadScope(scheduler_->device(), /*threads=*/1, [this] {
      loops_.reset();
      calls_.reset();
    });
  } catch (...) {  // the members do
  }
}

void ModelWork::Add(std::vector<CheckedRow> rows, const std::vector<size_t>& positions,
                    const std::shared_ptr<RowListener>& listener, const QueueShare& share,
                    uint64_t queued_ns) {
  if (gpu_) {
    for (CheckedRow& row : rows) row.draft.clear();  // calls do not use drafts
    return gpu_->queue().Add(std::move(rows), positions, listener, share, queued_ns);
  }
  if (const auto lost = loss()) {
    for (const size_t position : positions) listener->RowFailed(position, *lost, NoTime());
    return;
  }
  // The rows of a request have the same options, except for the vocabulary map.
  std::vector<CheckedRow> of_calls, of_loops;
  std::vector<size_t> call_positions, loop_positions;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool in_loop =
        rows[i].in_loop && (!loops_->given_up() || rows[i].only_in_loop || !calls_);
    if (!in_loop) rows[i].draft.clear();
    (in_loop ? loop_positions : call_positions).push_back(positions[i]);
    (in_loop ? of_loops : of_calls).push_back(std::move(rows[i]));
  }
  if (!of_loops.empty())
    loops_->queue().Add(std::move(of_loops), loop_positions, listener, share, queued_ns);
  if (!of_calls.empty())
    calls_->queue().Add(std::move(of_calls), call_positions, listener, share, queued_ns);
}

size_t ModelWork::Ahead(std::string_view tenant, size_t rows, size_t most) const {
  size_t count = 0;
  if (gpu_) count += gpu_->queue().Ahead(tenant, rows, most);
  if (calls_) count += calls_->queue().Ahead(tenant, rows, most);
  if (loops_) count += loops_->queue().Ahead(tenant, rows, most);
  return std::min(count, most);
}

void ModelWork::Withdraw(const RowListener& listener, const Error& error) noexcept {
  if (gpu_) gpu_->queue().Withdraw(listener, error);
  if (calls_) calls_->queue().Withdraw(listener, error);
  if (loops_) loops_->queue().Withdraw(listener, error);
}

void ModelWork::DropCancelled() noexcept {
  if (gpu_) gpu_->queue().DropCancelled();
  if (calls_) calls_->queue().DropCancelled();
  if (loops_) loops_->queue().DropCancelled();
}

uint64_t ModelWork::BusyTime_ns() const {
  if (OnGpu()) return 0;
  return scheduler_->BusyTime_ns(calls_.get()) + scheduler_->BusyTime_ns(loops_.get());
}

std::string ModelWork::loop_failure() const { return loops_ ? loops_->failure() : ""; }

std::optional<Error> ModelWork::loss() const {
  return loop_model_ ? loop_model_->loss() : std::nullopt;
}

std::vector<LoopCounters> ModelWork::loop_counters() const {
  return loops_ ? loops_->counters() : std::vector<LoopCounters>();
}

}  // namespace ct2triton
