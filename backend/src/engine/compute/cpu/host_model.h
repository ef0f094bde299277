// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "engine/compute/cpu/layer_packer.h"
#include "engine/compute/cpu/layer_stack.h"
#include "engine/compute/cpu/list_projections.h"
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
            const Wrapper& wrap = nullptr, const ListMemory& lists = {});

  std::unique_ptr<LoopCompute> NewCompute(RowMemory* memory) const override;
  StepRoom step_room() const override { return {127, 64}; }
  // More rows are no faster, and slower from 16 on, when they exceed the processor's caches.
  size_t encoded_together() const override { return 8; }
  ElementType weight_type() const override { return weights().loop_type(); }
  size_t packed_bytes() const override { return model_bytes_ + lists_->bytes(); }
  size_t MapBytes(const VocabularyMap& map) const override { return lists_->BytesOf(map); }

  const LayerStack& encoder() const { return *encoder_; }
  const LayerStack& decoder() const { return *decoder_; }
  // Projection to the candidates of a map, in their order; null: to the whole vocabulary.
  std::shared_ptr<const Linear> ProjectionTo(const VocabularyMap* map) const {
    return map == nullptr ? projection_ : lists_->Get(*map);
  }
  std::shared_ptr<const Linear> TrialProjectionTo(const VocabularyMap* map) const {
    return map == nullptr ? projection_ : lists_->GetOnce(*map);
  }

 private:
  size_t CacheFloats(size_t tokens) const override { return tokens * TokenFloats(); }

  std::shared_ptr<const Linear> projection_;
  std::unique_ptr<const LayerStack> encoder_;
  std::unique_ptr<const LayerStack> decoder_;
  std::unique_ptr<const ListProjections> lists_;
  size_t model_bytes_ = 0;  // without lists
};

}  // namespace ct2triton
