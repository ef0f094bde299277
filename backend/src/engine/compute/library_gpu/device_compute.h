// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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
  explicit DeviceCompute(const DeviceModel& model);

  SourceEncoder::Encodings Encode(const std::vector<const CheckedRow*>& rows, LoopCaches* caches,
                                  SourceEncoder::Counts* counts) override;
  void Run(const std::vector<StepRow>& rows) override;
  // Greedy searches only. A search that takes the largest logit as it is chooses on the device; the
  // logits of the others are copied.
  std::vector<Found> Choose(const std::vector<size_t>& outputs, const std::vector<Seeker>& seekers,
                            const VocabularyMap* map) override;
  std::vector<float> Logits(const VocabularyMap* map) override;

 private:
  Tensor Project(const Tensor& hidden, const VocabularyMap* map) const;

  const DeviceModel& model_;
  const Tensors tensors_;
  DeviceEncoder encoder_;
  DeviceStep step_;
  Tensor hidden_;  // [outputs, width], of the last Run
  size_t outputs_ = 0;
};

}  // namespace ct2triton
