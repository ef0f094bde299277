// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/host_compute.h"

#include <algorithm>

namespace ct2triton {

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
