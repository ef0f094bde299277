// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

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
  DeviceEncoder(const DecoderModel& model, const Tensors& tensors);

 private:
  std::vector<std::shared_ptr<Encoding>> Make(const SourceIds& ids, std::vector<Making> makings,
                                              CachePool* pool) override;
  size_t KindOf(const CheckedRow& row) const override;

  const Tensors& tensors_;
};

}  // namespace ct2triton
