// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/host_encoder.h"

#include <algorithm>
#include <utility>

namespace ct2triton {
namespace {

// More rows together are no faster, and slower from 16 on, when they exceed the processor's caches.
constexpr size_t kMostRows = 8;

}  // namespace

HostEncoder::HostEncoder(const HostModel& model)
    : SourceEncoder(model, kMostRows), model_(model), pass_(model.encoder()) {}

std::vector<std::shared_ptr<Encoding>> HostEncoder::Make(const SourceIds& ids,
                                                         std::vector<Making> makings,
                                                         CachePool* pool) {
  std::vector<std::shared_ptr<HostEncoding>> made;
  for (Making& making : makings) {
    const size_t layer_floats = making.tokens * 2 * model_.shape().heads_width;
    CacheBlock block = pool->Take(model_.SourceCacheFloats(making.tokens));
    made.push_back(std::make_shared<HostEncoding>(std::move(making.place), std::move(block),
                                                  making.tokens, layer_floats));
  }
  Project(pass_.Run(ids), made);
  return {made.begin(), made.end()};
}

// memory: encoder output of all tokens of all rows, concatenated.
void HostEncoder::Project(const float* memory,
                          const std::vector<std::shared_ptr<HostEncoding>>& encodings) {
  size_t tokens = 0;
  for (const auto& encoding : encodings) tokens += encoding->tokens();
  const size_t width = model_.shape().heads_width;
  for (size_t layer = 0; layer < model_.shape().layers; ++layer) {
    const Linear& project = *model_.decoder().layers()[layer].source->keys;
    const float* projected = projected_.Room(tokens * 2 * width);
    project.Apply(memory, tokens, projected_.data(), nullptr);
    for (const auto& encoding : encodings) {
      for (size_t t = 0; t < encoding->tokens(); ++t, projected += 2 * width) {
        std::copy_n(projected, width, encoding->keys(layer) + t * width);
        std::copy_n(projected + width, width, encoding->values(layer) + t * width);
      }
    }
  }
}

}  // namespace ct2triton
