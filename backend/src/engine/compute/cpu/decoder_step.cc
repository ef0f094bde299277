// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/decoder_step.h"

#include <algorithm>

#include "engine/compute/cpu/host_encoder.h"

namespace ct2triton {

const float* DecoderStep::Run(const std::vector<StepRow>& rows) {
  tokens_ = 0;
  size_t most_keys = 0;
  for (const StepRow& row : rows) {
    tokens_ += row.count;
    most_keys = std::max({most_keys, row.position + row.count, row.encoding->tokens()});
  }
  scores_.Room(most_keys * model_.shape().heads);
  context_.Room(tokens_ * model_.inner_width());
  for (FloatBuffer* buffer : {&hidden_, &between_, &normalized_}) {
    buffer->Room(tokens_ * model_.width());
  }
  Embed(rows);
  for (size_t layer = 0; layer < model_.layers().size(); ++layer) RunLayer(layer, rows);
  return Output(rows);
}

void DecoderStep::Embed(const std::vector<StepRow>& rows) {
  std::vector<int32_t> ids;
  ids.reserve(tokens_);
  for (const StepRow& row : rows) ids.insert(ids.end(), row.tokens, row.tokens + row.count);
  model_.embeddings().Apply(ids, hidden_.data());
  const size_t width = model_.width();
  const float scale = model_.embedding_scale();
  float* embedding = hidden_.data();
  for (const StepRow& row : rows) {
    for (size_t i = 0; i < row.count; ++i, embedding += width) {
      const bool is_first = row.position + i < std::max<size_t>(row.prompt, 1);
      if (model_.shape().start_from_zero_embedding && is_first) {
        std::fill(embedding, embedding + width, 0.0F);
      } else if (scale != 1) {
        for (size_t k = 0; k < width; ++k) embedding[k] *= scale;
      }
      model_.AddPosition(row.position + i, embedding);
    }
  }
  if (model_.embedding_norm() != nullptr) {
    model_.embedding_norm()->Apply(hidden_.data(), tokens_, hidden_.data());
  }
}

const float* DecoderStep::Normalized(const Norm& norm, const float* in) {
  if (!model_.shape().pre_norm) return in;
  norm.Apply(in, tokens_, normalized_.data());
  return normalized_.data();
}

void DecoderStep::FinishAttention(const AttentionLayers& layers, const float* residual,
                                  float* out) {
  layers.out->Apply(context_.data(), tokens_, out, residual);
  if (!model_.shape().pre_norm) layers.norm->Apply(out, tokens_, out);
}

void DecoderStep::RunLayer(size_t index, const std::vector<StepRow>& rows) {
  const DecoderLayer& layer = model_.layers()[index];
  float* hidden = hidden_.data();
  float* between = between_.data();

  const float* in = Normalized(*layer.self.norm, hidden);
  layer.self.in->Apply(in, tokens_, projected_.Room(tokens_ * layer.self.in->outputs()), nullptr);
  AttendToSelf(index, rows);
  FinishAttention(layer.self, hidden, between);

  in = Normalized(*layer.source.norm, between);
  layer.source.in->Apply(in, tokens_, projected_.data(), nullptr);
  AttendToSource(index, rows);
  FinishAttention(layer.source, between, hidden);

  in = Normalized(*layer.feed_forward_norm, hidden);
  const size_t inner_size = tokens_ * layer.inner->outputs();
  float* inner = inner_.Room(inner_size);
  layer.inner->Apply(in, tokens_, inner, nullptr);
  if (layer.gate) {
    float* gate = gate_.Room(inner_size);
    layer.gate->Apply(in, tokens_, gate, nullptr);
    for (size_t i = 0; i < inner_size; ++i) inner[i] *= gate[i];
  }
  layer.outer->Apply(inner, tokens_, between, hidden);
  if (!model_.shape().pre_norm) layer.feed_forward_norm->Apply(between, tokens_, between);
  std::swap(hidden_, between_);
}

// Each token sees those of its row up to itself: of several forced tokens of a step, the later ones
// are not in the cache yet when an earlier one looks.
void DecoderStep::AttendToSelf(size_t index, const std::vector<StepRow>& rows) {
  const size_t width = model_.inner_width();
  const DecoderShape& shape = model_.shape();
  AttentionCall call{};
  call.stride = width;
  call.heads = shape.heads;
  call.head_dim = model_.head_dim();
  call.scale = model_.layers()[index].self.scale;
  call.bias = {model_.bias(), shape.bias_max_distance};
  call.scores = scores_.data();
  call.out = context_.data();
  const float* projected = projected_.data();  // query, key, value
  for (const StepRow& row : rows) {
    float* keys = row.cache + index * row.capacity * 2 * width;
    float* values = keys + row.capacity * width;
    for (size_t i = 0; i < row.count; ++i) {
      const size_t position = row.position + i;
      const size_t slot = row.Slot(i);
      std::copy_n(projected + width, width, keys + slot * width);
      std::copy_n(projected + 2 * width, width, values + slot * width);
      call.slots = row.slots;
      call.query = projected;
      call.keys = keys;
      call.values = values;
      call.tokens = position + 1;
      call.position = position + (position < row.prompt ? row.prompt - 1 : 0);
      model_.kernels().attend(call);
      projected += 3 * width;
      call.out += width;
    }
  }
}

void DecoderStep::AttendToSource(size_t index, const std::vector<StepRow>& rows) {
  const size_t width = model_.inner_width();
  AttentionCall call{};
  call.stride = width;
  call.heads = model_.shape().heads;
  call.head_dim = model_.head_dim();
  call.scale = model_.layers()[index].source.scale;
  call.scores = scores_.data();
  call.query = projected_.data();
  call.out = context_.data();
  for (const StepRow& row : rows) {
    const auto& encoding = static_cast<const HostEncoding&>(*row.encoding);  // HostCompute's own
    call.keys = encoding.keys(index);
    call.values = encoding.values(index);
    call.tokens = encoding.tokens();
    const bool noted = row.alignment != nullptr && row.alignment->layer() == index;
    for (size_t i = 0; i < row.count; ++i) {
      model_.kernels().attend(call);
      if (noted) row.alignment->Note(row.Slot(i), call.scores, call.tokens);
      call.query += width;
      call.out += width;
    }
  }
}

// Only a row's last tokens decide about what is next: one, and those of a draft.
const float* DecoderStep::Output(const std::vector<StepRow>& rows) {
  const size_t width = model_.width();
  const float* last = hidden_.data();
  float* out = between_.data();
  size_t wanted = 0;
  for (const StepRow& row : rows) {
    last += row.count * width;
    std::copy(last - row.outputs * width, last, out + wanted * width);
    wanted += row.outputs;
  }
  if (wanted == 0) return out;
  if (model_.output_norm() != nullptr) model_.output_norm()->Apply(out, wanted, out);
  if (const float scale = model_.shape().output_scale; scale != 1) {
    for (size_t i = 0; i < wanted * width; ++i) out[i] *= scale;
  }
  return out;
}

}  // namespace ct2triton
