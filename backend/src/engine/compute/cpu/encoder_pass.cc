// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/encoder_pass.h"

#include <algorithm>
#include <cstdint>

#include "engine/team.h"

namespace ct2triton {
namespace {

// Products of queries and keys that are worth the cost of sharing: some microseconds.
constexpr size_t kLeastProducts = size_t{64} << 10;

}  // namespace

const float* EncoderPass::Run(const std::vector<std::vector<size_t>>& ids) {
  std::vector<LayerStack::Token> tokens;
  rows_.clear();
  for (const auto& row : ids) {
    rows_.push_back({tokens.size(), row.size()});
    for (size_t i = 0; i < row.size(); ++i) {
      tokens.push_back({static_cast<int32_t>(row[i]), i, /*is_zero=*/false});
    }
  }
  const float* hidden = RunLayers(tokens);
  if (!stack().output_norm()) return hidden;
  stack().output_norm()->Apply(hidden, tokens.size(), Spare());
  return Spare();
}

// Each token attends to all tokens of its row. Threads share the rows' groups of heads.
void EncoderPass::AttendToSelf(size_t layer, const float* projected, float* out) {
  RowAttention all{};
  all.heads = shape().heads;
  all.head_dim = shape().head_dim();
  all.scale = stack().layers()[layer].self.scale;
  all.bias = stack().bias();
  const size_t groups = (all.heads + kHeadGroup - 1) / kHeadGroup;
  size_t products = 1;  // of queries and keys
  size_t longest = 0;
  for (const Row& row : rows_) {
    products += row.tokens * row.tokens * all.width();
    longest = std::max(longest, row.tokens);
  }
  const size_t units = rows_.size() * groups;
  const size_t least = std::max<size_t>(1, kLeastProducts * units / products);
  const size_t floats = RowScratchFloats(longest, all.head_dim);
  scratch_.Room(Team::MostMembers() * floats);
  Team::Split(units, least, [&](size_t begin, size_t end, size_t member) {
    RowAttention call = all;
    call.scratch = scratch_.data() + member * floats;
    for (; begin < end; ++begin) {
      const Row& row = rows_[begin / groups];
      const size_t head = begin % groups * kHeadGroup;
      call.tokens = row.tokens;
      call.projected = projected + row.first * 3 * all.width();
      call.out = out + row.first * all.width();
      stack().row_kernel().attend_row(call, head, std::min(head + kHeadGroup, all.heads));
    }
  });
}

}  // namespace ct2triton
