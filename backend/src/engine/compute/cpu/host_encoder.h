// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/compute/cpu/encoder_pass.h"
#include "engine/compute/cpu/float_buffer.h"
#include "engine/compute/cpu/host_model.h"
#include "engine/loop/cache_pool.h"
#include "engine/loop/source_encoder.h"

namespace ct2triton {

// Keys and values of an encoded source, for every layer of the decoder.
class HostEncoding : public Encoding {
 public:
  HostEncoding(SharedEncodings::Place place, CacheBlock block, size_t tokens, size_t layer_floats)
      : Encoding(std::move(place), tokens), block_(std::move(block)), layer_floats_(layer_floats) {}

  // Of a layer, [tokens, width]: keys and values are separate, because attention reads all keys and
  // then all values.
  float* keys(size_t layer) const { return block_.data() + layer * layer_floats_; }
  float* values(size_t layer) const { return keys(layer) + layer_floats_ / 2; }

 private:
  const CacheBlock block_;
  const size_t layer_floats_;
};

// Encodes sources without padding. With int8 weights, padding would change the last bits of an
// encoding and so, at times, a token of the answer. An encoding does not depend on the other
// sources.
class HostEncoder final : public SourceEncoder {
 public:
  explicit HostEncoder(const HostModel& model);

 private:
  std::vector<std::shared_ptr<Encoding>> Make(const SourceIds& ids, std::vector<Making> makings,
                                              CachePool* pool) override;
  void Project(const float* memory, const std::vector<std::shared_ptr<HostEncoding>>& encodings);

  const HostModel& model_;
  EncoderPass pass_;
  FloatBuffer projected_;
};

}  // namespace ct2triton
