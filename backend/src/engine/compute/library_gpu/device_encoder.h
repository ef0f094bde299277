// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "ctranslate2_layers.h"
#include "engine/compute/library_gpu/device_model.h"
#include "engine/compute/library_gpu/tensors.h"
#include "engine/loop/cache_pool.h"
#include "engine/loop/source_encoder.h"

namespace ct2triton {

// A source as CTranslate2's encoder leaves it on the device: [1, tokens, width].
class DeviceEncoding : public Encoding {
 public:
  DeviceEncoding(SharedEncodings::Place place, size_t tokens, CacheBlock block, Tensor memory)
      : Encoding(std::move(place), tokens), block_(std::move(block)), memory_(std::move(memory)) {}
  const Tensor& memory() const { return memory_; }

 private:
  const CacheBlock block_;  // stands for the memory that it takes
  const Tensor memory_;
};

// Encodes sources with CTranslate2's encoder, of all lengths together: on a GPU more rows cost
// little more.
class DeviceEncoder final : public SourceEncoder {
 public:
  // Throws Error(kUnsupported) if the encoder cannot be called.
  DeviceEncoder(const DeviceModel& model, const Tensors& tensors);

 private:
  std::vector<std::shared_ptr<Encoding>> Make(const SourceIds& ids, std::vector<Making> makings,
                                              CachePool* pool) override;
  // [sources, at least the longest, width], until the next call.
  const Tensor& Run(const SourceIds& ids);

  const DeviceModel& model_;
  const Tensors& tensors_;
  const std::unique_ptr<ctranslate2::models::SequenceToSequenceReplica> replica_;
  ctranslate2::models::EncoderDecoderReplica* const encoder_;  // the same replica
  Tensor memory_;                                              // what was encoded last
};

}  // namespace ct2triton
