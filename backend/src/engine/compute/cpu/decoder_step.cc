// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/decoder_step.h"

#include <algorithm>
#include <cstdint>

#include "engine/team.h"

namespace ct2triton {
namespace {

// Keys and values that are worth the cost of sharing: some microseconds of reading.
constexpr size_t kLeastFloats = size_t{8} << 10;

// Of `count` heads from `first` on, or up to the last one.
QueryAttention HeadsOf(QueryAttention call, size_t first, size_t count) {
  const size_t floats = first * call.head_dim;
  call.query += floats;
  call.keys += floats;
  call.values += floats;
  call.out += floats;
  call.heads = std::min(count, call.heads - first);
  call.bias = call.bias.From(first);
  return call;
}

// The row's own source position with most attention, by the mean of its heads; of equal ones, the
// first. weights: [all heads, encoded tokens].
int64_t MostAttended(const RowAlignment& row, const float* weights, size_t encoded_tokens) {
  int64_t position = 0;
  float most = -1;  // less than any weight
  for (size_t i = 0; i < row.count(); ++i) {
    float sum = 0;
    for (const size_t head : row.heads().heads) {
      sum += weights[head * encoded_tokens + row.first() + i];
    }
    if (sum <= most) continue;
    most = sum;
    position = static_cast<int64_t>(i);
  }
  return position;
}

}  // namespace

const float* DecoderStep::Run(const std::vector<StepSequence>& rows) {
  rows_ = &rows;
  most_keys_ = 0;
  for (const StepSequence& row : rows) {
    most_keys_ = std::max({most_keys_, row.position + row.count, row.source->tokens()});
  }
  scores_.Room(Team::MostMembers() * most_keys_ * shape().heads);
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

// All keys and values are stored first. A token attends only to those of its row up to itself, also
// when a step has several tokens of a row.
void DecoderStep::AttendToSelf(size_t layer, const float* projected, float* out) {
  const size_t width = shape().heads_width;
  QueryAttention call = CallOf(stack().layers()[layer].self.scale);
  call.bias = stack().bias();
  call.out = out;
  calls_.clear();
  for (const StepSequence& row : *rows_) {
    const auto& cache = static_cast<const HostRowCache&>(*row.cache);  // HostCompute's own
    call.slots = row.slots;
    call.keys = cache.keys(layer);
    call.values = cache.values(layer);
    for (size_t i = 0; i < row.count; ++i) {
      const size_t position = row.position + i;
      const size_t slot = row.Slot(i);
      std::copy_n(projected + width, width, cache.keys(layer) + slot * width);
      std::copy_n(projected + 2 * width, width, cache.values(layer) + slot * width);
      call.query = projected;
      call.tokens = position + 1;
      call.position = position + (position < row.prompt ? row.prompt - 1 : 0);
      calls_.push_back(call);
      projected += 3 * width;
      call.out += width;
    }
  }
  Attend();
}

void DecoderStep::AttendToSource(size_t layer, const float* queries, float* out) {
  const size_t width = shape().heads_width;
  QueryAttention call = CallOf(stack().layers()[layer].source->scale);
  call.query = queries;
  call.out = out;
  calls_.clear();
  for (const StepSequence& row : *rows_) {
    const auto& source = static_cast<const HostSource&>(*row.source);  // HostCompute's own
    call.keys = source.keys(layer);
    call.values = source.values(layer);
    call.tokens = source.tokens();
    const bool noted = row.alignment != nullptr && row.alignment->heads().layer == layer;
    for (size_t i = 0; i < row.count; ++i) {
      if (noted) {
        AttendAndNote(call, row.Slot(i), row.alignment);
      } else {
        calls_.push_back(call);
      }
      call.query += width;
      call.out += width;
    }
  }
  Attend();
}

QueryAttention DecoderStep::CallOf(float scale) const {
  QueryAttention call{};
  call.stride = shape().heads_width;
  call.heads = shape().heads;
  call.head_dim = shape().head_dim();
  call.scale = scale;
  return call;
}

// Scores of all heads are needed at once.
void DecoderStep::AttendAndNote(QueryAttention call, size_t slot, RowAlignment* alignment) {
  call.scores = scores_.data();
  stack().row_kernel().attend(call);
  alignment->Put(slot, MostAttended(*alignment, call.scores, call.tokens));
}

// Shared by groups of heads, because a lone row has no other parts.
void DecoderStep::Attend() {
  const size_t groups = (shape().heads + kHeadGroup - 1) / kHeadGroup;
  size_t floats = 1;  // of keys and values that are read
  for (const QueryAttention& call : calls_) floats += 2 * call.tokens * call.stride;
  const size_t units = calls_.size() * groups;
  const size_t least = std::max<size_t>(1, kLeastFloats * units / floats);
  Team::Split(units, least, [&](size_t begin, size_t end, size_t member) {
    float* const scores = scores_.data() + member * most_keys_ * shape().heads;
    while (begin < end) {
      const size_t group = begin % groups;
      const size_t count = std::min(groups - group, end - begin);
      QueryAttention call = HeadsOf(calls_[begin / groups], group * kHeadGroup, count * kHeadGroup);
      call.scores = scores;
      stack().row_kernel().attend(call);
      begin += count;
    }
  });
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
