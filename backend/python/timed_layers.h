// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/compute/cpu/linear.h"

namespace ct2triton {

// Work and time of one product of a model, for benchmarks/roofline.py.
struct LayerTime {
  std::string scope;
  size_t inputs = 0;
  size_t outputs = 0;
  size_t bytes = 0;  // of its packed weights
  uint64_t uses = 0;
  uint64_t rows = 0;      // sum over all uses
  uint64_t ns = 0;        // sum over all uses
  uint64_t after_ns = 0;  // sum of the times from the end of a use to the start of the next product
};

// The products of a model whose uses are timed. One thread at a time may use them.
class LayerClock {
 public:
  // The product, with its uses timed. The clock must outlive it.
  std::unique_ptr<Linear> Timed(std::unique_ptr<Linear> linear, const LinearSpec& spec);
  const std::vector<LayerTime>& layers() const { return layers_; }

  void Begin(size_t layer);
  void End(size_t layer, size_t rows);

 private:
  std::vector<LayerTime> layers_;
  LayerTime* last_ = nullptr;  // the product used most recently
  uint64_t begin_ns_ = 0;
  uint64_t end_ns_ = 0;
};

}  // namespace ct2triton
