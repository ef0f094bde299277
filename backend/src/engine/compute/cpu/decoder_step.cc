// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/decoder_step.h"

#include <algorithm>

#include "engine/compute/cpu/host_encoder.h"

namespace ct2triton {

const float* DecoderStep::Run(const std::vector<StepSequence>& rows) {
  rows_ = &rows;
  size_t most_keys = 0;
  for (const StepSequence& row : rows) {
    most_keys = std::max({most_keys, row.position + row.count, row.encoding->tokens()});
  }
  scores_.Room(most_keys * shape().heads);
  return Output(RunLayers(TokensOf(rows)));
}

std::vector<LayerStack::Token> DecoderStep::TokensOf(const std::vector<StepSequence>& rows) const {
  std::vector<LayerStack::Token> tokens;
  for (const StepSequence& row : rows) {
    const size_t zeros = decoder_.start_from_zero_embedding ? std::max<size_t>(row.prompt, 1) : 0;
    for (size_t i = 0; i < row.count; ++i) {
      const size_t position = row.position + i;
      tokens.push_back({row.tokens[i], position, position < zeros});
    }
  }
  return tokens;
}

// Each token attends to the tokens of its row up to itself: when a step has several forced tokens,
// later ones are not in the cache yet when an earlier one attends.
void DecoderStep::AttendToSelf(size_t layer, const float* projected, float* out) {
  const size_t width = shape().heads_width;
  AttentionCall call{};
  call.stride = width;
  call.heads = shape().heads;
  call.head_dim = shape().head_dim();
  call.scale = stack().layers()[layer].self.scale;
  call.bias = stack().bias();
  call.scores = scores_.data();
  call.out = out;
  for (const StepSequence& row : *rows_) {
    const auto& cache = static_cast<const HostRowCache&>(*row.cache);  // HostCompute's own
    float* keys = cache.keys(layer);
    float* values = cache.values(layer);
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
      stack().kernels().attend(call);
      projected += 3 * width;
      call.out += width;
    }
  }
}

void DecoderStep::AttendToSource(size_t layer, const float* queries, float* out) {
  const size_t width = shape().heads_width;
  AttentionCall call{};
  call.stride = width;
  call.heads = shape().heads;
  call.head_dim = shape().head_dim();
  call.scale = stack().layers()[layer].source->scale;
  call.scores = scores_.data();
  call.query = queries;
  call.out = out;
  for (const StepSequence& row : *rows_) {
    const auto& encoding = static_cast<const HostEncoding&>(*row.encoding);  // HostCompute's own
    call.keys = encoding.keys(layer);
    call.values = encoding.values(layer);
    call.tokens = encoding.tokens();
    const bool noted = row.alignment != nullptr && row.alignment->heads().layer == layer;
    for (size_t i = 0; i < row.count; ++i) {
      stack().kernels().attend(call);
      if (noted) row.alignment->Note(row.Slot(i), call.scores, call.tokens);
      call.query += width;
      call.out += width;
    }
  }
}

// Only a row's last tokens have outputs: one, and those of a draft.
const float* DecoderStep::Output(const float* hidden) {
  const size_t width = shape().width;
  float* out = Spare();
  size_t wanted = 0;
  for (const StepSequence& row : *rows_) {
    hidden += row.count * width;
    std::copy(hidden - row.outputs * width, hidden, out + wanted * width);
    wanted += row.outputs;
  }
  if (wanted == 0) return out;
  if (const auto& norm = stack().output_norm()) norm->Apply(out, wanted, out);
  if (const float scale = decoder_.output_scale; scale != 1) {
    for (size_t i = 0; i < wanted * width; ++i) out[i] *= scale;
  }
  return out;
}

}  // namespace ct2triton
