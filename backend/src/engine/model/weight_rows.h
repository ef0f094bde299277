// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/model_file.h"

namespace ct2triton {

// The rows of a weight of model.bin, [outputs, inputs], in the type that they are computed with.
// Where the file has another one, each row is converted as it is read, with the roundings of
// CTranslate2. Any threads may read at once; the file must live as long.
class WeightRows {
 public:
  // What one thread reads into, and uses again.
  struct Block {
    std::vector<std::byte> rows;  // [count, inputs] of type()
    std::vector<float> scales;    // [count] what a weight was multiplied by; of int8 only
    std::vector<std::byte> stored;
    std::vector<float> floats;
  };

  // The variable `scope`/weight. `type`: kInt8 or kFloat32. Throws Error(kUnsupported) for a
  // variable of another form, kInvalidArgument where its scales do not fit.
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
  std::vector<float> scales_;  // of bytes in the file
};

}  // namespace ct2triton
