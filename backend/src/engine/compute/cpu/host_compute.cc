// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/host_compute.h"

#include <algorithm>

namespace ct2triton {

SourceEncoder::Encodings HostCompute::Encode(const std::vector<const CheckedRow*>& rows,
                                             LoopCaches* caches, SourceEncoder::Counts* counts) {
  return encoder_.Encode(rows, caches, counts);
}

void HostCompute::Run(const std::vector<StepRow>& rows) {
  hidden_ = step_.Run(rows);
  outputs_ = 0;
  for (const StepRow& row : rows) outputs_ += row.outputs;
}

std::vector<Found> HostCompute::Choose(const std::vector<size_t>& outputs,
                                       const std::vector<Seeker>& seekers,
                                       const VocabularyMap* map) {
  const float* hidden = outputs.size() == outputs_ ? hidden_ : Gather(outputs);
  return chooser_.Choose(seekers, hidden, model_.ProjectionTo(map));
}

// Side by side, until the next call.
const float* HostCompute::Gather(const std::vector<size_t>& outputs) {
  const size_t width = model_.shape().width;
  float* const gathered = gathered_.Room(outputs.size() * width);
  float* to = gathered;
  for (const size_t output : outputs) to = std::copy_n(hidden_ + output * width, width, to);
  return gathered;
}

std::vector<float> HostCompute::Logits(const VocabularyMap* map) {
  const Linear& projection = model_.ProjectionTo(map);
  std::vector<float> logits(outputs_ * projection.outputs());
  projection.Apply(hidden_, outputs_, logits.data(), nullptr);
  return logits;
}

}  // namespace ct2triton
