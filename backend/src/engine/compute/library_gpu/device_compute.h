// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/compute/library_gpu/device_encoder.h"
#include "engine/compute/library_gpu/device_step.h"
#include "engine/compute/library_gpu/tensors.h"
#include "engine/compute/loop_compute.h"

namespace ct2triton {

// On any device of CTranslate2, by its operations alone. A step takes one token of each row, and
// all running rows take part in each.
class DeviceCompute final : public LoopCompute {
 public:
  DeviceCompute(const DeviceModel& model, LoopCaches* caches);

  SourceEncoder::Encodings Encode(const std::vector<const CheckedRow*>& rows, LoopCaches* caches,
                                  SourceEncoder::Counts* counts) override;
  std::unique_ptr<RowCache> NewCache(const CheckedRow& row, size_t slots) override;
  // Greedy searches only. A search that takes the largest logit as it is chooses on the device; the
  // logits of the others are copied.
  std::vector<Found> Step(const std::vector<StepRow>& rows,
                          const std::vector<OutputRules>& rules) override;
  std::vector<Found> ChooseAgain(const std::vector<size_t>& outputs,
                                 const std::vector<OutputRules>& rules) override;

 private:
  void ChooseAmong(const std::vector<size_t>& group, const std::vector<size_t>& outputs,
                   const std::vector<OutputRules>& rules, std::vector<Found>* found);
  Tensor Project(const Tensor& hidden, const VocabularyMap* map) const;

  const DeviceModel& model_;
  LoopCaches* const caches_;
  const Tensors tensors_;
  DeviceEncoder encoder_;
  DeviceStep step_;
  Tensor hidden_;                            // [outputs, width], of the last step
  std::vector<std::vector<float>> numbers_;  // copied logits
};

}  // namespace ct2triton
