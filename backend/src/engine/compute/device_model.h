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

// The model of decode loops, on whatever device: what all loops share, and never changed once it is
// made.
class DeviceModel {
 public:
  virtual ~DeviceModel() = default;
  DeviceModel(const DeviceModel&) = delete;
  DeviceModel& operator=(const DeviceModel&) = delete;

  // What one loop computes with. The model and the caches must be there as long.
  virtual std::unique_ptr<LoopCompute> NewCompute(LoopCaches* caches) const = 0;
  // Why its loops cannot run a row, for a message; none: they can.
  virtual std::optional<std::string> WhyNot(const CheckedRow& /*row*/) const { return {}; }
  // Of forced tokens and drafts that a step takes beside one token of each row.
  virtual StepRoom step_room() const = 0;
  // Why nothing can run on its device until the process ends; none: it can.
  virtual std::optional<Error> loss() const { return {}; }
  virtual size_t packed_bytes() const = 0;              // of copies of the weights, made for loops
  virtual size_t gpu_cache_bytes() const { return 0; }  // of pages that rows and sources hold
  // Of packed_bytes(), those of the candidates of a vocabulary map; 0: there are none of this map.
  virtual size_t MapBytes(const VocabularyMap& map) const = 0;

  const Weights& weights() const { return *weights_; }
  const DecoderShape& shape() const { return shape_; }
  // Of the host, for searches.
  const Kernels& kernels() const { return kernels_; }
  // Of the choice among the candidates of a map of the weights that has fixed ones; null: among the
  // whole vocabulary.
  size_t Candidates(const VocabularyMap* map) const {
    return map == nullptr ? shape_.vocabulary : map->numbered().size();
  }

  // Floats of the keys and values of one token, in all layers.
  size_t TokenFloats() const { return shape_.layers * 2 * shape_.heads_width; }
  // Tokens that the cache of a row holds: up to its limit, of each of its beams.
  size_t CacheTokens(const CheckedRow& row) const;
  // What a row takes from the pool of a loop, and its source.
  virtual size_t CacheFloats(const CheckedRow& row) const = 0;
  virtual size_t SourceCacheFloats(size_t tokens) const = 0;
  // What DecodeLoop::Admit takes from its pool for a row: for its own tokens up to its limit, and
  // for its source where no other row has it.
  size_t CacheBytes(const CheckedRow& row) const;
  size_t SourceCacheBytes(const CheckedRow& row) const;
  // Tokens of a source row as the encoder sees it.
  size_t EncodedTokens(const CheckedRow& row) const;

 protected:
  // Throws Error(kUnsupported), with the reason, where the loop does not know the model.
  explicit DeviceModel(std::shared_ptr<const Weights> weights);

 private:
  const std::shared_ptr<const Weights> weights_;
  const Kernels& kernels_;
  const DecoderShape shape_;
};

}  // namespace ct2triton
