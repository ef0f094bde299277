// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/host_compute.h"

#include <algorithm>

namespace ct2triton {

SourceEncoder::Encodings HostCompute::Encode(const std::vector<const CheckedRow*>& rows,
                                             LoopCaches* caches, SourceEncoder::Counts* counts) {
  return encoder_.Encode(rows, caches, counts);
}

std::unique_ptr<RowCache> HostCompute::NewCache(const CheckedRow& /*row*/, size_t slots) {
  const size_t floats = slots * model_.TokenFloats();
  return std::make_unique<HostRowCache>(caches_->pool.Take(floats), floats / model_.shape().layers);
}

std::vector<Found> HostCompute::Step(const std::vector<StepSequence>& rows,
                                     const std::vector<OutputRules>& rules) {
  hidden_ = step_.Run(rows);
  return chooser_.Choose(rules, hidden_);
}

std::vector<Found> HostCompute::ChooseAgain(const std::vector<size_t>& outputs,
                                            const std::vector<OutputRules>& rules) {
  const size_t width = model_.shape().width;
  float* const gathered = gathered_.Room(outputs.size() * width);
  float* to = gathered;
  for (const size_t output : outputs) to = std::copy_n(hidden_ + output * width, width, to);
  return chooser_.Choose(rules, gathered);
}

}  // namespace ct2triton
