// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/loop_engine.h"

#include <map>
#include <mutex>
#include <utility>

#include "engine/loop/decode_loop.h"
#include "engine/loop/loop_support.h"
#include "engine/thread_scope.h"

namespace ct2triton {
namespace {

// Caches that nobody uses and that are kept for the next rows.
constexpr size_t kKeptCacheBytes = size_t{64} << 20;

}  // namespace

std::shared_ptr<LoopModel> LoopModel::Get(const std::shared_ptr<const Weights>& weights) {
  static std::mutex mutex;  // a second model on the same weights waits for the first one's trial
  static std::map<const Weights*, std::weak_ptr<LoopModel>> models;
  const std::lock_guard<std::mutex> lock(mutex);
  for (auto it = models.begin(); it != models.end();) {
    it = it->second.expired() ? models.erase(it) : std::next(it);
  }
  if (const auto known = models.find(weights.get()); known != models.end()) {
    if (auto model = known->second.lock()) return model;
  }
  auto model = std::make_shared<LoopModel>(std::make_shared<const DecoderModel>(weights),
                                           std::make_shared<CachePool>(kKeptCacheBytes));
  // One thread: more would wait for each other where the cores have other work.
  RunInThreadScope(weights->device(), 1, [&] { model->trial_ = TryDecoder(*model->model_); });
  models[weights.get()] = model;
  return model;
}

LoopModel::LoopModel(std::shared_ptr<const DecoderModel> model, std::shared_ptr<CachePool> pool)
    : model_(std::move(model)), pool_(std::move(pool)) {}

std::unique_ptr<LoopEngine> LoopModel::NewLoop() const {
  return std::make_unique<DecodeLoop>(model_, pool_);
}

bool LoopModel::CanRun(const CheckedRow& row) const {
  return !WhyNotLoop(*row.search, model_->weights());
}

size_t LoopModel::CacheBytes(const CheckedRow& row) const { return model_->CacheBytes(row); }

size_t LoopModel::cache_bytes_in_use() const { return pool_->bytes_in_use(); }

}  // namespace ct2triton
