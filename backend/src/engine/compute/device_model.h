// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "engine/compute/cache_pool.h"
#include "engine/model/stack_shape.h"
#include "engine/model/weights.h"
#include "error.h"

namespace ct2triton {

struct RowKernel;
class LoopCompute;

// Tokens that may run in a step in addition to one per row: forced tokens, and draft tokens, which
// may be wrong. The limit is for all rows together, because all rows wait for them. The rest runs
// in the next step; answers do not change.
struct StepRoom {
  size_t forced;
  size_t drafts;
};

// The model of decode loops on a device. Immutable and shared by all loops.
class DeviceModel {
 public:
  virtual ~DeviceModel() = default;
  DeviceModel(const DeviceModel&) = delete;
  DeviceModel& operator=(const DeviceModel&) = delete;

  // The computing state of one loop. The model and the memory must outlive it.
  virtual std::unique_ptr<LoopCompute> NewCompute(RowMemory* memory) const = 0;
  // Reason for messages why its loops cannot run a row with so many encoded tokens and this limit;
  // none: they can.
  virtual std::optional<std::string> WhyNot(size_t /*encoded_tokens*/, size_t /*limit*/) const {
    return {};
  }
  virtual StepRoom step_room() const = 0;
  virtual size_t encoded_together() const = 0;  // most sources of LoopCompute::Encode
  // Why nothing can run on its device until the process ends; none: rows can run.
  virtual std::optional<Error> loss() const { return {}; }
  virtual ElementType weight_type() const = 0;  // of the layers
  virtual size_t packed_bytes() const = 0;      // of copies of the weights, made for loops
  // Memory that the device had for keys and values when the model was loaded, which other models
  // may use as well; none: as much as is wanted.
  virtual std::optional<size_t> most_cache_bytes() const { return {}; }
  // Of that, what others have not taken, as of the last MeasureCache().
  virtual std::optional<size_t> most_cache_bytes_now() const { return {}; }
  virtual void MeasureCache() const {}
  virtual size_t gpu_cache_bytes() const { return 0; }  // of pages that rows and sources hold
  // What the candidates of a vocabulary map take while they are packed; 0: nothing.
  virtual size_t MapBytes(const VocabularyMap& map) const = 0;

  const Weights& weights() const { return *weights_; }
  const DecoderShape& shape() const { return shape_; }
  // Of the host, for searches.
  const RowKernel& row_kernel() const { return row_kernel_; }
  // Number of candidates of a map with fixed ones; null: size of the whole vocabulary.
  size_t Candidates(const VocabularyMap* map) const {
    return map == nullptr ? shape_.vocabulary : map->numbered().size();
  }

  // Floats of the keys and values of one token, in all layers.
  size_t TokenFloats() const { return shape_.layers * 2 * shape_.heads_width; }
  // Bytes that are taken from RowMemory's pool for the keys and values of so many tokens: of all
  // sequences of a row, or of its source.
  size_t CacheBytes(size_t tokens) const { return CachePool::BlockBytes(CacheFloats(tokens)); }

 protected:
  // Throws Error(kUnsupported), with the reason, if the loop does not support the model.
  explicit DeviceModel(std::shared_ptr<const Weights> weights);

 private:
  virtual size_t CacheFloats(size_t tokens) const = 0;

  const std::shared_ptr<const Weights> weights_;
  const RowKernel& row_kernel_;
  const DecoderShape shape_;
};

}  // namespace ct2triton
