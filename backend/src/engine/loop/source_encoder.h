// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/loop/cache_pool.h"
#include "engine/loop/decoder_model.h"
#include "engine/loop/encoder_pass.h"
#include "rows/checked_row.h"

namespace ct2triton {

// Keys and values of an encoded source, for every layer of the decoder. Rows may share it.
class Encoding {
 public:
  Encoding(CacheBlock block, size_t tokens, size_t layer_floats)
      : block_(std::move(block)), tokens_(tokens), layer_floats_(layer_floats) {}

  size_t tokens() const { return tokens_; }
  // [tokens, keys and values]
  float* layer(size_t layer) const { return block_.data() + layer * layer_floats_; }

 private:
  CacheBlock block_;
  size_t tokens_;
  size_t layer_floats_;
};

// Encodes sources with the model's own encoder (encoder_pass.h), or else with CTranslate2's; for
// one thread at a time, as its replica is.
//
// CTranslate2's encodes only sources of one length together: with int8 weights, padding would
// change the last bits of an encoding and so, now and then, a token of the answer. Our own has no
// padding: an encoding never depends on what is encoded with it.
class SourceEncoder {
 public:
  // The model must be there as long. Throws Error(kUnsupported) if the encoder cannot be called.
  explicit SourceEncoder(const DecoderModel& model);

  struct Counts {
    uint64_t calls = 0;
    uint64_t tokens = 0;
  };
  // One encoding per row, in order. Throws Error(kInternal) or std::bad_alloc.
  std::vector<std::shared_ptr<const Encoding>> Encode(const std::vector<const CheckedRow*>& rows,
                                                      CachePool* pool, Counts* counts);

 private:
  using Group = std::vector<size_t>;  // positions of rows
  std::vector<Group> GroupsOf(const std::vector<const CheckedRow*>& rows) const;
  void EncodeGroup(const Group& group, const std::vector<const CheckedRow*>& rows, CachePool* pool,
                   std::vector<std::shared_ptr<const Encoding>>* encodings);
  void Project(const float* memory, const std::vector<std::shared_ptr<Encoding>>& encodings);
  const float* EncodeByLibrary(const std::vector<std::vector<size_t>>& ids);
  std::vector<size_t> SourceIds(const CheckedRow& row) const;

  const DecoderModel& model_;
  const std::unique_ptr<ctranslate2::models::SequenceToSequenceReplica> replica_;
  ctranslate2::models::EncoderDecoderReplica* const encoder_;  // the same replica
  ctranslate2::StorageView memory_;                            // what the library encoded last
  std::optional<EncoderPass> pass_;
  FloatBuffer keys_;
};

}  // namespace ct2triton
