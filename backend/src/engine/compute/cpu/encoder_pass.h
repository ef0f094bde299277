// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/compute/cpu/layer_pass.h"

namespace ct2triton {

// Runs sources through an encoder. A row's encoding never depends on the other rows.
class EncoderPass final : private LayerPass {
 public:
  explicit EncoderPass(const LayerStack& stack) : LayerPass(stack) {}

  // ids: of each row, at least one. Returns [tokens of all rows, width], valid until the next call.
  const float* Run(const std::vector<std::vector<size_t>>& ids);

 private:
  void AttendToSelf(size_t layer, const float* projected, float* out) override;
  void AttendToSource(size_t /*layer*/, const float* /*queries*/, float* /*out*/) override {}

  struct Row {
    size_t first;  // token of all rows
    size_t tokens;
  };
  std::vector<Row> rows_;  // of this run
  FloatBuffer scratch_;    // of each member of a team
};

}  // namespace ct2triton
