// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "engine/compute/cache_pool.h"
#include "engine/compute/cpu/encoder_pass.h"
#include "engine/compute/cpu/float_buffer.h"
#include "engine/compute/cpu/host_model.h"
#include "engine/compute/step_sequence.h"

namespace ct2triton {

// Keys and values of an encoded source, for every layer of the decoder.
class HostSource final : public EncodedSource {
 public:
  HostSource(CacheBlock block, size_t tokens, size_t layer_floats)
      : EncodedSource(tokens), block_(std::move(block)), layer_floats_(layer_floats) {}

  // Of a layer, [tokens, width]: keys and values are separate, because attention reads all keys and
  // then all values.
  float* keys(size_t layer) const { return block_.data() + layer * layer_floats_; }
  float* values(size_t layer) const { return keys(layer) + layer_floats_ / 2; }

 private:
  const CacheBlock block_;
  const size_t layer_floats_;
};

// Encodes sources without padding. With int8 weights, padding would change the last bits of an
// encoding and so, at times, a token of the answer.
class HostEncoder {
 public:
  HostEncoder(const HostModel& model, CachePool* pool)
      : model_(model), pool_(pool), pass_(model.encoder()) {}

  // See LoopCompute.
  std::vector<std::unique_ptr<EncodedSource>> Encode(
      const std::vector<std::vector<size_t>>& sources);

 private:
  void Project(const float* memory, const std::vector<const HostSource*>& sources);

  const HostModel& model_;
  CachePool* const pool_;
  EncoderPass pass_;
  FloatBuffer projected_;
};

}  // namespace ct2triton
