// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/library_gpu/device_compute.h"

namespace ct2triton {
namespace {

// Whether the search chooses by more than the logits as they are.
bool NeedsLogits(const GreedySearch& search) {
  return search.ChangesLogits() || search.rules().scored() || !search.Disabled().empty();
}

}  // namespace

DeviceCompute::DeviceCompute(const DeviceModel& model)
    : model_(model),
      tensors_(model.device(), model.type()),
      encoder_(model, tensors_),
      step_(model, tensors_),
      hidden_(tensors_.Empty()) {}

SourceEncoder::Encodings DeviceCompute::Encode(const std::vector<const CheckedRow*>& rows,
                                               LoopCaches* caches, SourceEncoder::Counts* counts) {
  return encoder_.Encode(rows, caches, counts);
}

void DeviceCompute::Run(const std::vector<StepRow>& rows) {
  hidden_ = step_.Run(rows);
  outputs_ = 0;
  for (const StepRow& row : rows) outputs_ += row.outputs;
}

Tensor DeviceCompute::Project(const Tensor& hidden, const VocabularyMap* map) const {
  Tensor logits = tensors_.Empty();
  model_.ProjectionTo(map).ApplyTo(hidden, nullptr, &logits);
  return logits;
}

std::vector<Found> DeviceCompute::Choose(const std::vector<size_t>& outputs,
                                         const std::vector<Seeker>& seekers,
                                         const VocabularyMap* map) {
  const std::vector<int32_t> own(outputs.begin(), outputs.end());
  const Tensor logits = outputs.size() == outputs_
                            ? Project(hidden_, map)
                            : Project(tensors_.Pick(hidden_, tensors_.Numbers(own)), map);
  std::vector<int32_t> copied;
  for (size_t i = 0; i < seekers.size(); ++i) {
    if (NeedsLogits(*seekers[i].greedy)) copied.push_back(static_cast<int32_t>(i));
  }
  std::vector<Found> found(seekers.size());
  if (copied.size() < seekers.size()) {
    const auto maxima = tensors_.Maxima(logits, seekers.size());
    for (size_t i = 0; i < maxima.size(); ++i) found[i].choice.output = maxima[i];
  }
  if (copied.empty()) return found;
  const size_t candidates = model_.ProjectionTo(map).outputs();
  auto numbers =
      Tensors::Floats(tensors_.Pick(logits, tensors_.Numbers(copied)), copied.size() * candidates);
  for (size_t i = 0; i < copied.size(); ++i) {
    const auto which = static_cast<size_t>(copied[i]);
    found[which].choice = seekers[which].greedy->Choose(numbers.data() + i * candidates, candidates,
                                                        model_.kernels());
  }
  return found;
}

std::vector<float> DeviceCompute::Logits(const VocabularyMap* map) {
  return Tensors::Floats(Project(hidden_, map), outputs_ * model_.ProjectionTo(map).outputs());
}

}  // namespace ct2triton
