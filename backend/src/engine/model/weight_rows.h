// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/model_file.h"

namespace ct2triton {

// The rows of a weight of model.bin, [outputs, inputs], in the type used for computing. If the file
// has another type, each row is converted when it is read, with CTranslate2's rounding. Threads may
// read at once; the file must outlive it.
class WeightRows {
 public:
  // Buffers of one thread, to be reused.
  struct Block {
    std::vector<std::byte> rows;  // [count, inputs] of type()
    std::vector<float> scales;    // [count] factor of the weights; only for int8
    std::vector<std::byte> stored;
    std::vector<float> floats;
  };

  // The variable `scope`/weight. `type`: kInt8 or kFloat32. Throws Error(kUnsupported) for a
  // variable of another form, kInvalidArgument if its scales do not fit.
  WeightRows(const ModelFile& file, const std::string& scope, ElementType type);

  ElementType type() const { return type_; }
  int64_t outputs() const { return weight_.shape[0]; }
  int64_t inputs() const { return weight_.shape[1]; }
  void Read(int64_t first, int64_t count, Block* block) const;

 private:
  void Widen(int64_t first, int64_t count, float* to, Block* block) const;

  const ModelFile& file_;
  const Variable& weight_;
  const ElementType type_;
  std::vector<float> scales_;  // of int8 weights in the file
};

}  // namespace ct2triton
