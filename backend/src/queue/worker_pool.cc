// SPDX-License-Identifier: Apache-2.0
#include "queue/worker_pool.h"

#include <algorithm>
#include <functional>
#include <future>
#include <new>
#include <string_view>

#include "error.h"

namespace ct2triton {
namespace {

// Beam rows of different limits share a call while less than this part of them reaches its limit:
// a row that does has run for nothing and runs again.
constexpr double kMostLimited = 0.2;
constexpr double kForgetting = 0.02;  // the weight of the newest row in that part

// The settings of CTranslate2 that belong to a thread, for as long as a worker lives.
class WorkerThreadScope {
 public:
  WorkerThreadScope(const Device& device, size_t threads) : device_(LibraryDevice(device)) {
    if (device_ == ctranslate2::Device::CUDA) {
      ctranslate2::set_device_index(device_, device.index);
    }
    ctranslate2::set_num_threads(threads);
  }
  ~WorkerThreadScope() {
    if (ctranslate2::destroy_context != nullptr) ctranslate2::destroy_context(device_);
  }
  // Lets the asynchronous GPU allocator give memory back while nothing waits.
  void Idle() const noexcept {
    if (device_ != ctranslate2::Device::CUDA) return;
    try {
      ctranslate2::synchronize_stream(device_);
    } catch (...) {  // the next call on this device fails with the reason
    }
  }

 private:
  const ctranslate2::Device device_;
};

size_t HashIds(const Ids& ids) {
  const std::string_view bytes(reinterpret_cast<const char*>(ids.data()),
                               ids.size() * sizeof(ids[0]));
  return std::hash<std::string_view>()(bytes);
}

size_t HashRow(const CheckedRow& row) {
  return HashIds(row.source) * 31 + HashIds(row.prefix) * 7 + static_cast<size_t>(row.limit_tokens);
}

bool EqualRows(const CheckedRow& a, const CheckedRow& b) {
  return a.source == b.source && a.prefix == b.prefix && a.limit_tokens == b.limit_tokens &&
         a.cut == b.cut && a.search->SameAs(*b.search);
}

bool HasForcedTokens(const CheckedRow& row, const Weights& weights) {
  return row.prefix.size() > (weights.NeedsPrefix() ? 1 : 0);
}

// `overrun`: beam searches may run beyond the limits of single rows.
bool MayShareCall(const CheckedRow& a, const CheckedRow& b, const Weights& weights, bool overrun) {
  const Search& search = *a.search;
  if (!search.SameAs(*b.search)) return false;
  if (search.MixesAttention() && weights.device().kind == Device::Kind::kCpu) return false;
  if (search.PaddingMatters() && a.source.size() != b.source.size()) return false;
  if (search.ForcedTokensMatter() && HasForcedTokens(a, weights) != HasForcedTokens(b, weights)) {
    return false;
  }
  const bool any_limit = search.EndsRowsAlone() || (overrun && search.MayOverrun());
  return any_limit || a.limit_tokens == b.limit_tokens;
}

}  // namespace

bool PoolSettings::operator==(const PoolSettings& other) const {
  return workers == other.workers && threads_per_worker == other.threads_per_worker &&
         bounds.max_rows == other.bounds.max_rows && bounds.max_tokens == other.bounds.max_tokens &&
         bounds.max_search_tokens == other.bounds.max_search_tokens;
}

std::shared_ptr<WorkerPool> WorkerPool::Get(std::shared_ptr<const Weights> weights,
                                            const PoolSettings& settings) {
  static std::mutex mutex;
  static std::vector<std::weak_ptr<WorkerPool>> pools;
  const std::lock_guard<std::mutex> lock(mutex);
  pools.erase(std::remove_if(pools.begin(), pools.end(), [](const auto& p) { return p.expired(); }),
              pools.end());
  for (const auto& known : pools) {
    const auto pool = known.lock();
    if (pool && &pool->weights() == weights.get() && pool->settings() == settings) return pool;
  }
  auto pool = std::make_shared<WorkerPool>(std::move(weights), settings);
  pools.push_back(pool);
  return pool;
}

WorkerPool::WorkerPool(std::shared_ptr<const Weights> weights, const PoolSettings& settings)
    : weights_(std::move(weights)), settings_(settings) {
  std::vector<std::promise<void>> started(settings_.workers);
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

WorkerPool::~WorkerPool() { StopWorkers(); }

void WorkerPool::StopWorkers() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  space_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::Submit(std::vector<CheckedRow> rows, const std::vector<size_t>& positions,
                        const std::shared_ptr<RowListener>& listener, size_t max_queued_rows) {
  std::unique_lock<std::mutex> lock(mutex_);
  space_.wait(lock, [&] { return queue_.size() < max_queued_rows || stopping_; });
  // Before the rows are there, for should memory run out half-way. The lock keeps the workers back.
  if (rows.size() == 1) {
    work_.notify_one();
  } else {
    work_.notify_all();
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    Enqueue(std::move(rows[i]), Waiter{listener, positions[i]});
  }
}

void WorkerPool::Enqueue(CheckedRow row, Waiter waiter) {
  const size_t hash = HashRow(row);
  const bool shareable = row.search->Deterministic();
  if (shareable) {
    const auto [begin, end] = by_hash_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (!EqualRows(it->second->row, row)) continue;
      it->second->waiters.push_back(std::move(waiter));
      return;
    }
  }
  queue_.push_back(Job{std::move(row), {std::move(waiter)}, hash, Counted()});
  if (shareable) by_hash_.emplace(hash, std::prev(queue_.end()));
}

void WorkerPool::Work(std::promise<void>* started) {
  std::unique_ptr<WorkerThreadScope> scope;
  std::unique_ptr<Engine> engine;
  try {
    scope = std::make_unique<WorkerThreadScope>(weights_->device(), settings_.threads_per_worker);
    engine = std::make_unique<Engine>(weights_);
    started->set_value();
  } catch (...) {
    started->set_exception(std::current_exception());
    return;
  }
  while (true) {
    std::vector<Job> jobs;
    try {
      jobs = TakeCall();
    } catch (...) {  // no memory to choose rows: one waits less
      FailOldest();
      continue;
    }
    if (jobs.empty()) return;  // the engine goes before the scope, on this thread
    Answer(engine.get(), std::move(jobs));
    bool idle = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      idle = queue_.empty();
    }
    if (idle) scope->Idle();
  }
}

std::vector<Job> WorkerPool::TakeCall() {
  std::unique_lock<std::mutex> lock(mutex_);
  work_.wait(lock, [&] { return !queue_.empty() || stopping_; });
  if (queue_.empty()) return {};
  std::vector<Candidate> candidates;
  candidates.reserve(queue_.size());
  const CheckedRow& first = queue_.front().row;
  const bool overrun = limit_rate_ < kMostLimited;
  for (const Job& job : queue_) {
    const Search& search = *job.row.search;
    candidates.push_back({static_cast<int64_t>(job.row.source.size()), search.Copies(),
                          MayShareCall(first, job.row, *weights_, overrun),
                          search.Tokens(job.row.limit_tokens)});
  }
  CallBounds bounds = settings_.bounds;
  bounds.max_rows =
      std::min(bounds.max_rows, FairShare(queue_.size(), running_rows_, settings_.workers));
  const std::vector<size_t> picked = PickRows(candidates, bounds);
  std::vector<Job> jobs;
  jobs.reserve(picked.size());  // from here on nothing throws
  auto it = queue_.begin();
  size_t at = 0;
  for (const size_t position : picked) {
    std::advance(it, position - at);
    ForgetHash(it);
    jobs.push_back(std::move(*it));
    jobs.back().running = Counted(&running_rows_);
    it = queue_.erase(it);
    at = position + 1;
  }
  lock.unlock();
  space_.notify_all();
  return jobs;
}

void WorkerPool::ForgetHash(Queue::iterator job) noexcept {
  const auto [begin, end] = by_hash_.equal_range(job->hash);
  const auto known =
      std::find_if(begin, end, [job](const auto& entry) { return entry.second == job; });
  if (known != end) by_hash_.erase(known);
}

void WorkerPool::FailOldest() noexcept {
  Queue oldest;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.empty()) return;  // another worker took it
    ForgetHash(queue_.begin());
    oldest.splice(oldest.begin(), queue_, queue_.begin());
  }
  space_.notify_all();
  FailJob(&oldest.front(), OutOfMemory());
}

void WorkerPool::Answer(Engine* engine, std::vector<Job> jobs) noexcept {
  try {
    RunningCall call(&jobs);
    if (jobs.empty()) return;
    try {
      call.Deliver(Translate(engine, &call));
      return;
    } catch (...) {
      const Error error = CurrentError();
      if (jobs.size() == 1) return call.Fail(error);
    }
    // One row may have spoilt the call, or all were too many: each gets a call of its own.
    call.GiveUp();
    for (Job& job : jobs) {
      std::vector<Job> alone;
      alone.push_back(std::move(job));
      Answer(engine, std::move(alone));
    }
  } catch (...) {
    const Error error = CurrentError();
    for (Job& job : jobs) FailJob(&job, error);
  }
}

std::vector<RowResult> WorkerPool::Translate(Engine* engine, RunningCall* call) {
  auto results = engine->Translate(call->rows(), call, call->times());
  if (call->rows().front()->search->MayOverrun()) CountLimited(results);
  return results;
}

void WorkerPool::CountLimited(const std::vector<RowResult>& results) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& row : results) {
    limit_rate_ += kForgetting * ((row.reached_limit ? 1.0 : 0.0) - limit_rate_);
  }
}

}  // namespace ct2triton
