// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/encoder_pass.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ct2triton {

const float* EncoderPass::Run(const std::vector<std::vector<size_t>>& ids) {
  tokens_ = 0;
  size_t longest = 0;
  const size_t head_dim = model_.inner_width() / model_.heads();
  for (const auto& row : ids) {
    tokens_ += row.size();
    longest = std::max(longest, row.size());
  }
  scratch_.Room(RowScratchFloats(longest, model_.heads(), head_dim));
  context_.Room(tokens_ * model_.inner_width());
  projected_.Room(tokens_ * 3 * model_.inner_width());
  for (FloatBuffer* buffer : {&hidden_, &between_, &normalized_}) {
    buffer->Room(tokens_ * model_.width());
  }
  Embed(ids);
  for (const auto& layer : model_.layers()) RunLayer(layer, ids);
  if (model_.output_norm() != nullptr) {
    model_.output_norm()->Apply(hidden_.data(), tokens_, hidden_.data());
  }
  return hidden_.data();
}

void EncoderPass::Embed(const std::vector<std::vector<size_t>>& ids) {
  std::vector<int32_t> all;
  all.reserve(tokens_);
  for (const auto& row : ids) all.insert(all.end(), row.begin(), row.end());
  model_.embeddings().Apply(all, hidden_.data());
  const size_t width = model_.width();
  float* embedding = hidden_.data();
  for (const auto& row : ids) {
    for (size_t position = 0; position < row.size(); ++position, embedding += width) {
      if (model_.embedding_scale() != 1) {
        for (size_t i = 0; i < width; ++i) embedding[i] *= model_.embedding_scale();
      }
      model_.positions().Add(position, embedding);
    }
  }
  if (model_.embedding_norm() != nullptr) {
    model_.embedding_norm()->Apply(hidden_.data(), tokens_, hidden_.data());
  }
}

const float* EncoderPass::Normalized(const Norm& norm, const float* in) {
  if (!model_.pre_norm()) return in;
  norm.Apply(in, tokens_, normalized_.data());
  return normalized_.data();
}

void EncoderPass::RunLayer(const EncoderLayer& layer, const std::vector<std::vector<size_t>>& ids) {
  float* hidden = hidden_.data();
  float* between = between_.data();
  const float* in = Normalized(*layer.self.norm, hidden);
  layer.self.in->Apply(in, tokens_, projected_.data(), nullptr);
  Attend(layer, ids);
  layer.self.out->Apply(context_.data(), tokens_, between, hidden);
  if (!model_.pre_norm()) layer.self.norm->Apply(between, tokens_, between);

  in = Normalized(*layer.feed_forward_norm, between);
  const size_t inner_size = tokens_ * layer.inner->outputs();
  float* inner = inner_.Room(inner_size);
  layer.inner->Apply(in, tokens_, inner, nullptr);
  if (layer.gate) {
    float* gate = gate_.Room(inner_size);
    layer.gate->Apply(in, tokens_, gate, nullptr);
    for (size_t i = 0; i < inner_size; ++i) inner[i] *= gate[i];
  }
  layer.outer->Apply(inner, tokens_, hidden, between);
  if (!model_.pre_norm()) layer.feed_forward_norm->Apply(hidden, tokens_, hidden);
}

// Each token sees all tokens of its row.
void EncoderPass::Attend(const EncoderLayer& layer, const std::vector<std::vector<size_t>>& ids) {
  const size_t width = model_.inner_width();
  RowAttention row{};
  row.projected = projected_.data();
  row.heads = model_.heads();
  row.head_dim = width / model_.heads();
  row.scale = layer.self.scale;
  row.scratch = scratch_.data();
  row.out = context_.data();
  for (const auto& tokens : ids) {
    row.tokens = tokens.size();
    kernels_.attend_row(row);
    row.projected += row.tokens * 3 * width;
    row.out += row.tokens * width;
  }
}

}  // namespace ct2triton
