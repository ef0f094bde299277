// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/compute/cpu/products/packed_linear.h"

namespace ct2triton::products {

// Rows of inputs for a trial against the layer of the loaded library.
constexpr int64_t kProbeRows = 4;

// [kProbeRows, inputs]: rows of inputs on which the three roundings give other bytes in many places
// (from 8 inputs on), random ones, and zeros. The same at every call.
std::vector<float> RoundingProbe(int64_t inputs);

// The rounding with which `layer` makes these very bits of the rows of RoundingProbe; none where no
// rounding does. A layer of floats need only be near, and any rounding is as good. expected:
// [kProbeRows, outputs], from the library's layer.
std::optional<Rounding> FindRounding(const PackedLinear& layer, const float* expected,
                                     Activation activation = Activation::kNone);

}  // namespace ct2triton::products
