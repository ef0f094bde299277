// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/host_encoder.h"

#include <algorithm>

namespace ct2triton {

std::vector<std::unique_ptr<EncodedSource>> HostEncoder::Encode(
    const std::vector<std::vector<size_t>>& sources) {
  const size_t token_floats = model_.TokenFloats();
  std::vector<std::unique_ptr<EncodedSource>> encoded;
  std::vector<const HostSource*> own;
  for (const auto& source : sources) {
    auto one =
        std::make_unique<HostSource>(pool_->Take(source.size() * token_floats), source.size(),
                                     source.size() * token_floats / model_.shape().layers);
    own.push_back(one.get());
    encoded.push_back(std::move(one));
  }
  Project(pass_.Run(sources), own);
  return encoded;
}

// memory: encoder output of all tokens of all sources, concatenated.
void HostEncoder::Project(const float* memory, const std::vector<const HostSource*>& sources) {
  size_t tokens = 0;
  for (const HostSource* source : sources) tokens += source->tokens();
  const size_t width = model_.shape().heads_width;
  for (size_t layer = 0; layer < model_.shape().layers; ++layer) {
    const Linear& project = *model_.decoder().layers()[layer].source->keys;
    const float* projected = projected_.Room(tokens * 2 * width);
    project.Apply(memory, tokens, projected_.data(), nullptr);
    for (const HostSource* source : sources) {
      for (size_t t = 0; t < source->tokens(); ++t, projected += 2 * width) {
        std::copy_n(projected, width, source->keys(layer) + t * width);
        std::copy_n(projected + width, width, source->values(layer) + t * width);
      }
    }
  }
}

}  // namespace ct2triton
