// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "engine/compute/device_model.h"
#include "engine/compute/gpu/gpu_decoder.h"

namespace ct2triton::gpu {

class GpuRowCache;

// A model on a GPU with the state of all its loops. Used by one thread at a time.
struct GpuEngine {
  GpuEngine(const GpuPlace& place, const Weights& weights, const GpuLimits& limits);

  std::mutex mutex;  // of all that follows
  GpuDecoder decoder;
  std::set<GpuRowCache*> caches;
  uint64_t steps = 0;  // that ran ahead, of all loops
};

// A model whose loops run on our own kernels for GPUs.
class GpuModel final : public DeviceModel {
 public:
  // Throws Error(kUnsupported), with the reason, if the kernels cannot run the model, and
  // Error(kNoKernels) if the GPU cannot run the kernels.
  GpuModel(std::shared_ptr<const Weights> weights, const GpuPlace& place);

  std::unique_ptr<LoopCompute> NewCompute(RowMemory* memory) const override;
  std::optional<std::string> WhyNot(size_t encoded_tokens, size_t limit) const override;
  StepRoom step_room() const override { return {63, 32}; }
  size_t encoded_together() const override { return 64; }
  std::optional<Error> loss() const override { return engine_->decoder.loss(); }
  ElementType weight_type() const override;
  size_t packed_bytes() const override { return packed_bytes_; }
  std::optional<size_t> most_cache_bytes() const override {
    return engine_->decoder.most_cache_bytes();
  }
  void MeasureCache() const override {
    const std::lock_guard<std::mutex> lock(engine_->mutex);
    engine_->decoder.MeasureCache();
  }
  std::optional<size_t> most_cache_bytes_now() const override {
    return engine_->decoder.most_cache_bytes_now();
  }
  size_t gpu_cache_bytes() const override { return engine_->decoder.taken_bytes(); }
  size_t MapBytes(const VocabularyMap& map) const override;
  // Size in floats of the pages for `tokens` tokens.
  size_t FloatsOf(size_t tokens) const;

  const GpuLimits& limits() const { return limits_; }
  const std::shared_ptr<GpuEngine>& engine() const { return engine_; }
  // The engine's list for a map; none: the whole vocabulary.
  std::optional<int> ListOf(const VocabularyMap* map) const;
  std::string Description() const;

 private:
  size_t CacheFloats(size_t tokens) const override { return FloatsOf(tokens); }

  struct List {
    int name;
    size_t bytes;
  };

  const GpuLimits limits_;
  std::shared_ptr<GpuEngine> engine_;
  std::map<const VocabularyMap*, List> lists_;
  size_t packed_bytes_ = 0;
};

}  // namespace ct2triton::gpu
