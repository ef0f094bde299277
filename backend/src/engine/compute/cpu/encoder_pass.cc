// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/encoder_pass.h"

#include <algorithm>
#include <cstdint>

namespace ct2triton {

const float* EncoderPass::Run(const std::vector<std::vector<size_t>>& ids) {
  std::vector<LayerStack::Token> tokens;
  lengths_.clear();
  for (const auto& row : ids) {
    lengths_.push_back(row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      tokens.push_back({static_cast<int32_t>(row[i]), i, /*is_zero=*/false});
    }
  }
  const size_t longest = *std::max_element(lengths_.begin(), lengths_.end());
  scratch_.Room(RowScratchFloats(longest, shape().heads, shape().head_dim()));
  const float* hidden = RunLayers(tokens);
  if (!stack().output_norm()) return hidden;
  stack().output_norm()->Apply(hidden, tokens.size(), Spare());
  return Spare();
}

// Each token attends to all tokens of its row.
void EncoderPass::AttendToSelf(size_t layer, const float* projected, float* out) {
  RowAttention row{};
  row.projected = projected;
  row.heads = shape().heads;
  row.head_dim = shape().head_dim();
  row.scale = stack().layers()[layer].self.scale;
  row.bias = stack().bias();
  row.scratch = scratch_.data();
  row.out = out;
  for (const size_t tokens : lengths_) {
    row.tokens = tokens;
    stack().row_kernel().attend_row(row);
    row.projected += tokens * 3 * row.width();
    row.out += tokens * row.width();
  }
}

}  // namespace ct2triton
