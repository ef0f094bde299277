// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/compute/library_gpu/device_model.h"
#include "engine/compute/library_gpu/tensors.h"
#include "engine/compute/step_row.h"

namespace ct2triton {

// Attention of one token of each of many rows, by operations of CTranslate2 that run on every
// device. The keys and values of all rows lie in one tensor a layer, [rows, heads, time, head_dim].
//
// The newest token lies first. So a row that is shorter than others ends in padding, which the
// lengths of CTranslate2's softmax leave out, and a bias by distance is the same for all rows. Each
// step copies the keys and values once, as CTranslate2's own decoder does.
class DeviceAttention {
 public:
  // Both must be there as long.
  DeviceAttention(const DeviceModel& model, const Tensors& tensors);

  // These rows take part in the next step, with one token each: those that go on, in the order of
  // the last step, then those that begin. The others are forgotten, and so is a step that failed:
  // where a row's position shows that the last one did not count. Throws Error(kInternal) where a
  // row is not where a step left it.
  void Arrange(const std::vector<StepRow>& rows);

  // projected: [rows, queries, keys and values of the layer]. Gives [rows, inner_width].
  Tensor ToSelf(size_t layer, const Tensor& projected);
  // queries: [rows, inner_width].
  Tensor ToSource(size_t layer, Tensor queries) const;

 private:
  struct Place {
    uint64_t row;
    size_t tokens;  // that it had before the step
    size_t source_tokens;
  };
  struct Cache {
    Tensor keys, values;
  };
  using Caches = std::vector<Cache>;     // by layer
  using Numbers = std::vector<int32_t>;  // of rows of the last step

  Numbers KeptOf(const std::vector<StepRow>& rows) const;
  void CountLastStep(const std::vector<StepRow>& rows, const Numbers& kept);
  void DropNewest(Tensor* x) const;
  Caches ArrangedSelf(const Numbers& kept, size_t added, long time) const;
  Caches ArrangedSource(const Numbers& kept, const std::vector<StepRow>& rows, long time) const;
  Tensor AddedMemory(const std::vector<StepRow>& rows, size_t first, long time) const;
  Cache Project(size_t layer, const Tensor& memory, long rows, long time) const;
  Tensor Fit(Tensor x, size_t rows, long from, long to) const;
  void PrepareStep();
  Tensor Lengths(const std::vector<Place>& places, size_t Place::*tokens, size_t more) const;
  Tensor Bias() const;
  void Append(Tensor added, Tensor* cache);
  Tensor Attend(const Tensor& queries, const Cache& cache, float scale, const Tensor& lengths,
                const Tensor* bias) const;

  const DeviceModel& model_;
  const Tensors& tensors_;
  const long heads_;
  const long head_dim_;
  const long width_;  // of all heads
  std::vector<Place> places_;
  Caches self_, source_;
  long time_ = 0;  // of self_, before the step
  long source_time_ = 0;
  Tensor lengths_, source_lengths_;  // [rows * heads], of this step
  Tensor bias_;                      // [rows, heads, 1, time_ + 1], where there is one
  Tensor spare_;                     // to append in
};

}  // namespace ct2triton
