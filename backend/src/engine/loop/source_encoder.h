// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/loop/decoder_model.h"
#include "engine/loop/encoder_pass.h"
#include "engine/loop/shared_encodings.h"
#include "rows/checked_row.h"

namespace ct2triton {

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
    uint64_t rows = 0;    // that were encoded
    uint64_t tokens = 0;  // of these
    uint64_t shared = 0;  // rows that took an encoding that was there
  };
  // One encoding per row, in order; an equal source is encoded once, by whichever thread comes
  // first. Throws Error(kInternal) or std::bad_alloc.
  std::vector<std::shared_ptr<const Encoding>> Encode(const std::vector<const CheckedRow*>& rows,
                                                      LoopCaches* caches, Counts* counts);

 private:
  // A source to encode, and its place among the encodings.
  struct Task {
    const CheckedRow* row;
    size_t position;  // of the row
    SharedEncodings::Place place;
  };
  using Group = std::vector<Task>;
  using Encodings = std::vector<std::shared_ptr<const Encoding>>;

  std::vector<Group> GroupsOf(std::vector<Task> tasks) const;
  void EncodeGroup(Group group, LoopCaches* caches, Encodings* encodings, Counts* counts);
  void Project(const float* memory, const std::vector<std::shared_ptr<Encoding>>& encodings);
  const float* EncodeByLibrary(const std::vector<std::vector<size_t>>& ids);
  std::vector<size_t> SourceIds(const CheckedRow& row) const;

  const DecoderModel& model_;
  const std::unique_ptr<ctranslate2::models::SequenceToSequenceReplica> replica_;
  ctranslate2::models::EncoderDecoderReplica* const encoder_;  // the same replica
  ctranslate2::StorageView memory_;                            // what the library encoded last
  std::optional<EncoderPass> pass_;
  FloatBuffer projected_;
};

}  // namespace ct2triton
