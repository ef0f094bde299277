// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>

#include "engine/compute/cpu/layer_packer.h"
#include "engine/compute/cpu/layer_stack.h"
#include "engine/compute/device_model.h"

namespace ct2triton {

// A model on a CPU: encoder and decoder of our own, with packed weights.
class HostModel final : public DeviceModel {
 public:
  // Replaces a product of the model, for tests and benchmarks.
  using Wrapper =
      std::function<std::unique_ptr<Linear>(std::unique_ptr<Linear> linear, const LinearSpec&)>;
  // Throws Error(kUnsupported), with the reason, if the loop cannot run the model; calls of
  // CTranslate2 can.
  HostModel(std::shared_ptr<const Weights> weights, LayerPacker* packer,
            const Wrapper& wrap = nullptr);

  std::unique_ptr<LoopCompute> NewCompute(RowMemory* memory) const override;
  StepRoom step_room() const override { return {127, 64}; }
  // More rows are no faster, and slower from 16 on, when they exceed the processor's caches.
  size_t encoded_together() const override { return 8; }
  ElementType weight_type() const override { return weights().loop_type(); }
  size_t packed_bytes() const override { return packed_bytes_; }
  size_t MapBytes(const VocabularyMap& map) const override;

  const LayerStack& encoder() const { return *encoder_; }
  const LayerStack& decoder() const { return *decoder_; }
  // Projection to the candidates of a map, in their order; null: to the whole vocabulary.
  const Linear& ProjectionTo(const VocabularyMap* map) const {
    return map == nullptr ? *projection_ : *mapped_projections_.at(map);
  }

 private:
  size_t CacheFloats(size_t tokens) const override { return tokens * TokenFloats(); }

  std::unique_ptr<Linear> projection_;
  std::unique_ptr<const LayerStack> encoder_;
  std::unique_ptr<const LayerStack> decoder_;
  std::map<const VocabularyMap*, std::unique_ptr<Linear>> mapped_projections_;
  size_t packed_bytes_ = 0;
};

}  // namespace ct2triton
