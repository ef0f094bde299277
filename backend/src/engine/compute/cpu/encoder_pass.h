// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/compute/cpu/encoder_model.h"
#include "engine/compute/cpu/float_buffer.h"
#include "engine/compute/cpu/kernels.h"

namespace ct2triton {

// Runs sources through an encoder: the products take the tokens of all rows together, one behind
// the other, and attention goes row by row. There is no padding, so that a row's encoding never
// depends on the other rows. Holds room for intermediate results, so it is one thread's.
class EncoderPass {
 public:
  EncoderPass(const EncoderModel& model, const Kernels& kernels)
      : model_(model), kernels_(kernels) {}

  // ids: of each row, at least one. Returns [tokens of all rows, width], valid until the next call.
  const float* Run(const std::vector<std::vector<size_t>>& ids);

 private:
  void Embed(const std::vector<std::vector<size_t>>& ids);
  void RunLayer(const EncoderLayer& layer, const std::vector<std::vector<size_t>>& ids);
  void Attend(const EncoderLayer& layer, const std::vector<std::vector<size_t>>& ids);
  const float* Normalized(const Norm& norm, const float* in);

  const EncoderModel& model_;
  const Kernels& kernels_;
  size_t tokens_ = 0;  // of this run
  FloatBuffer hidden_, between_, normalized_, projected_, context_, inner_, gate_, scratch_;
};

}  // namespace ct2triton
