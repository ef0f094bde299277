// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/compute/row_alignment.h"

namespace ct2triton {

// An encoded source, in the form of the device that made it, which frees it with this object. Rows
// may share it.
class EncodedSource {
 public:
  explicit EncodedSource(size_t tokens) : tokens_(tokens) {}
  virtual ~EncodedSource() = default;
  EncodedSource(const EncodedSource&) = delete;
  EncodedSource& operator=(const EncodedSource&) = delete;

  size_t tokens() const { return tokens_; }

 private:
  const size_t tokens_;
};

// The keys and values of one row, in the form of the device that made it, which frees them with
// this object. They stay when the row is left out of a step.
class RowCache {
 public:
  RowCache() = default;
  virtual ~RowCache() = default;
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;
};

// One row's part in a step: its next tokens, and its state before them.
struct StepSequence {
  const int32_t* tokens;  // to be run now, at least one
  size_t count;
  size_t position;  // position of the first token = number of cached tokens
  RowCache* cache;
  const EncodedSource* source;
  size_t outputs;  // number of last tokens with outputs; 0: more forced tokens follow
  // Cache slot of each token of the row, including those to be run now; null: in order.
  const int32_t* slots = nullptr;
  // Number of first tokens that CTranslate2 runs as a prompt. It treats prompts differently in two
  // ways (src/layers/decoder.cc and attention.cc): if the first embedding is zero, all of the
  // prompt's are; and if attention has a bias by distance, the prompt's distances are greater by
  // its length minus one.
  size_t prompt = 0;
  RowAlignment* alignment = nullptr;  // receives the attention; null: not needed

  // Slot of the i-th token to be run.
  size_t Slot(size_t i) const {
    return slots == nullptr ? position + i : static_cast<size_t>(slots[position + i]);
  }
};

}  // namespace ct2triton
