// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/compute/cpu/products/packed_linear.h"

namespace ct2triton {

// Embeddings of tokens, shared by threads: packed weights, which a projection may share.
class Embeddings {
 public:
  explicit Embeddings(std::shared_ptr<const products::PackedLinear> table)
      : table_(std::move(table)) {}

  // The row of a token, as floats: [width]. Bytes are multiplied by the inverse of the row's scale,
  // which rounds as CTranslate2's wheels for x86-64 do.
  void Get(int32_t id, float* out) const;

 private:
  std::shared_ptr<const products::PackedLinear> table_;
};

}  // namespace ct2triton
