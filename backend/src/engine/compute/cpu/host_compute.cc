// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/host_compute.h"

#include <algorithm>

namespace ct2triton {

std::vector<std::unique_ptr<EncodedSource>> HostCompute::Encode(
    const std::vector<std::vector<size_t>>& sources) {
  std::vector<std::unique_ptr<EncodedSource>> encoded;
  std::vector<const HostSource*> own;
  for (const auto& source : sources) {
    const size_t floats = source.size() * model_.TokenFloats();
    auto one = std::make_unique<HostSource>(pool_->Take(floats), source.size(),
                                            floats / model_.shape().layers);
    own.push_back(one.get());
    encoded.push_back(std::move(one));
  }
  Project(encoder_.Run(sources), own);
  return encoded;
}

// memory: encoder output of all tokens of all sources, concatenated.
void HostCompute::Project(const float* memory, const std::vector<const HostSource*>& sources) {
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

std::unique_ptr<RowCache> HostCompute::NewCache(size_t slots, size_t /*limit*/) {
  const size_t floats = slots * model_.TokenFloats();
  return std::make_unique<HostRowCache>(pool_->Take(floats), floats / model_.shape().layers);
}

std::vector<Found> HostCompute::Step(const std::vector<StepSequence>& rows,
                                     const std::vector<OutputRules>& rules) {
  return chooser_.Choose(rules, step_.Run(rows));
}

std::vector<std::vector<float>> HostCompute::Logits(const std::vector<StepSequence>& rows,
                                                    const std::vector<const VocabularyMap*>& maps) {
  const float* const hidden = step_.Run(rows);
  size_t outputs = 0;
  for (const StepSequence& row : rows) outputs += row.outputs;
  if (outputs == 0) return {};
  auto logits = chooser_.Logits(nullptr, hidden, outputs);
  for (const VocabularyMap* map : maps) logits.push_back(chooser_.Logits(map, hidden, 1).front());
  return logits;
}

}  // namespace ct2triton
