// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "engine/loop/step_budget.h"
#include "engine/model/stack_shape.h"
#include "engine/model/weights.h"
#include "error.h"
#include "rows/checked_row.h"

namespace ct2triton {

struct Kernels;
struct LoopCaches;
class LoopCompute;

// The model of decode loops on a device. Immutable and shared by all loops.
class DeviceModel {
 public:
  virtual ~DeviceModel() = default;
  DeviceModel(const DeviceModel&) = delete;
  DeviceModel& operator=(const DeviceModel&) = delete;

  // The computing state of one loop. The model and the caches must outlive it.
  virtual std::unique_ptr<LoopCompute> NewCompute(LoopCaches* caches) const = 0;
  // Reason for messages why its loops cannot run a row; none: they can.
  virtual std::optional<std::string> WhyNot(const CheckedRow& /*row*/) const { return {}; }
  // Limit on forced and draft tokens per step, in addition to one token per row.
  virtual StepRoom step_room() const = 0;
  // Why nothing can run on its device until the process ends; none: rows can run.
  virtual std::optional<Error> loss() const { return {}; }
  virtual size_t packed_bytes() const = 0;              // of copies of the weights, made for loops
  virtual size_t gpu_cache_bytes() const { return 0; }  // of pages that rows and sources hold
  // Part of packed_bytes() for the candidates of a vocabulary map; 0: none.
  virtual size_t MapBytes(const VocabularyMap& map) const = 0;

  const Weights& weights() const { return *weights_; }
  const DecoderShape& shape() const { return shape_; }
  // The host's kernels, for searches.
  const Kernels& kernels() const { return kernels_; }
  // Number of candidates of a map with fixed ones; null: size of the whole vocabulary.
  size_t Candidates(const VocabularyMap* map) const {
    return map == nullptr ? shape_.vocabulary : map->numbered().size();
  }

  // Floats of the keys and values of one token, in all layers.
  size_t TokenFloats() const { return shape_.layers * 2 * shape_.heads_width; }
  // Tokens that the cache of a row holds: of each of its beams up to its limit.
  size_t CacheTokens(const CheckedRow& row) const;
  // Floats that a row and its source take from the pool of a loop.
  virtual size_t CacheFloats(const CheckedRow& row) const = 0;
  virtual size_t SourceCacheFloats(size_t tokens) const = 0;
  // Bytes that DecodeLoop::Admit takes from its pool for a row: for its own tokens up to its limit,
  // and for its source unless another row shares it.
  size_t CacheBytes(const CheckedRow& row) const;
  size_t SourceCacheBytes(const CheckedRow& row) const;
  // Tokens of a source row as the encoder sees it.
  size_t EncodedTokens(const CheckedRow& row) const;

 protected:
  // Throws Error(kUnsupported), with the reason, if the loop does not support the model.
  explicit DeviceModel(std::shared_ptr<const Weights> weights);

 private:
  const std::shared_ptr<const Weights> weights_;
  const Kernels& kernels_;
  const DecoderShape shape_;
};

}  // namespace ct2triton
