// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/device_model.h"

#include <string>
#include <utility>

#include "engine/compute/cpu/row_kernel.h"
#include "error.h"

namespace ct2triton {

DeviceModel::DeviceModel(std::shared_ptr<const Weights> weights)
    : weights_(std::move(weights)),
      row_kernel_(FastestRowKernel()),
      shape_(ReadDecoder(weights_->file())) {
  if (shape_.vocabulary == weights_->target().size()) return;
  throw Error(ErrorCode::kUnsupported,
              "the decode loop cannot run this model: its projection has " +
                  std::to_string(shape_.vocabulary) + " outputs for " +
                  std::to_string(weights_->target().size()) + " tokens");
}

}  // namespace ct2triton
