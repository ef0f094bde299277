// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/compute/library_gpu/device_attention.h"
#include "engine/compute/library_gpu/device_model.h"
#include "engine/compute/library_gpu/tensors.h"
#include "engine/compute/step_row.h"

namespace ct2triton {

// Runs a token of each of many rows through a decoder at once, as DecoderStep does, with all
// intermediate results on the device of the model.
class DeviceStep {
 public:
  // Both must be there as long.
  DeviceStep(const DeviceModel& model, const Tensors& tensors);

  // Returns what the projection takes, [outputs of all rows, width]. Throws what the layers throw.
  Tensor Run(const std::vector<StepRow>& rows);

 private:
  Tensor Embed(const std::vector<StepRow>& rows) const;
  void ScaleEmbeddings(const std::vector<StepRow>& rows, Tensor* embeddings) const;
  void AddPositions(const std::vector<StepRow>& rows, Tensor* embeddings) const;
  Tensor RunLayer(size_t index, const Tensor& hidden);
  // Into a sublayer, and out of it again: with a norm before the one, or behind the other.
  Tensor Enter(const LibraryNorm& norm, const LibraryLinear& product, const Tensor& x) const;
  Tensor Leave(const LibraryNorm& norm, const LibraryLinear& product, const Tensor& x,
               const Tensor& residual) const;
  Tensor Output(const std::vector<StepRow>& rows, Tensor hidden) const;

  const DeviceModel& model_;
  const Tensors& tensors_;
  const Tensor embedding_scale_;
  const Tensor output_scale_;
  DeviceAttention attention_;
};

}  // namespace ct2triton
