// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/library_gpu/device_compute.h"

#include <map>
#include <numeric>
#include <utility>

namespace ct2triton {
namespace {

// Whether the search chooses by more than the logits as they are.
bool NeedsLogits(const OutputRules& rules) {
  return rules.logits || rules.ChangesLogits() || rules.scored || !rules.forbidden.empty();
}

// Stands for the memory of a row's keys and values, which the attention holds.
class ReservedCache final : public RowCache {
 public:
  explicit ReservedCache(CacheBlock block) : block_(std::move(block)) {}

 private:
  const CacheBlock block_;
};

}  // namespace

DeviceCompute::DeviceCompute(const DeviceModel& model, LoopCaches* caches)
    : model_(model),
      caches_(caches),
      tensors_(model.device(), model.type()),
      encoder_(model, tensors_),
      step_(model, tensors_),
      hidden_(tensors_.Empty()) {}

SourceEncoder::Encodings DeviceCompute::Encode(const std::vector<const CheckedRow*>& rows,
                                               LoopCaches* caches, SourceEncoder::Counts* counts) {
  return encoder_.Encode(rows, caches, counts);
}

std::unique_ptr<RowCache> DeviceCompute::NewCache(const CheckedRow& row, size_t slots) {
  const size_t floats = (slots + model_.EncodedTokens(row)) * model_.TokenFloats();
  return std::make_unique<ReservedCache>(caches_->pool.Reserve(floats));
}

std::vector<Found> DeviceCompute::Step(const std::vector<StepRow>& rows,
                                       const std::vector<OutputRules>& rules) {
  hidden_ = step_.Run(rows);
  std::vector<size_t> outputs(rules.size());
  std::iota(outputs.begin(), outputs.end(), 0);
  return ChooseAgain(outputs, rules);
}

std::vector<Found> DeviceCompute::ChooseAgain(const std::vector<size_t>& outputs,
                                              const std::vector<OutputRules>& rules) {
  std::map<const VocabularyMap*, std::vector<size_t>> places;
  for (size_t i = 0; i < rules.size(); ++i) places[rules[i].map].push_back(i);
  numbers_.clear();
  std::vector<Found> found(rules.size());
  for (const auto& [map, group] : places) ChooseAmong(group, outputs, rules, &found);
  return found;
}

Tensor DeviceCompute::Project(const Tensor& hidden, const VocabularyMap* map) const {
  Tensor logits = tensors_.Empty();
  model_.ProjectionTo(map).ApplyTo(hidden, nullptr, &logits);
  return logits;
}

// group: places in all others, of one map.
void DeviceCompute::ChooseAmong(const std::vector<size_t>& group,
                                const std::vector<size_t>& outputs,
                                const std::vector<OutputRules>& rules, std::vector<Found>* found) {
  const VocabularyMap* map = rules[group.front()].map;
  std::vector<int32_t> own, copied;
  for (const size_t i : group) {
    if (NeedsLogits(rules[i])) copied.push_back(static_cast<int32_t>(own.size()));
    own.push_back(static_cast<int32_t>(outputs[i]));
  }
  const Tensor logits = Project(tensors_.Pick(hidden_, tensors_.Numbers(own)), map);
  const auto maxima = tensors_.Maxima(logits, group.size());
  for (size_t i = 0; i < group.size(); ++i) (*found)[group[i]].choice.output = maxima[i];
  if (copied.empty()) return;
  const size_t candidates = model_.ProjectionTo(map).outputs();
  numbers_.push_back(
      Tensors::Floats(tensors_.Pick(logits, tensors_.Numbers(copied)), copied.size() * candidates));
  float* next = numbers_.back().data();
  for (const int32_t place : copied) {
    const size_t i = group[static_cast<size_t>(place)];
    if (rules[i].logits) {
      (*found)[i].logits = next;
    } else {
      ApplyRules(rules[i], next, candidates, model_.kernels());
      (*found)[i].choice = PickToken(rules[i], next, candidates, model_.kernels());
    }
    next += candidates;
  }
}

}  // namespace ct2triton
