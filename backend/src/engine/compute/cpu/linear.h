// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/compute/cpu/products/choice.h"
#include "engine/compute/cpu/products/kernel.h"

namespace ct2triton {

// A product with fixed weights, shared by threads: y = activation(x * weights + bias) + residual.
class Linear {
 public:
  virtual ~Linear() = default;
  virtual size_t inputs() const = 0;
  virtual size_t outputs() const = 0;
  virtual size_t bytes() const = 0;  // of its memory
  // in: [rows, inputs]; out: [rows, outputs], must not overlap `in` or `residual`. residual: [rows,
  // outputs]; null: none.
  virtual void Apply(const float* in, size_t rows, float* out, const float* residual) const = 0;
  // Makes choices among its outputs without writing them. rules, choices: one per row.
  virtual void Choose(const float* in, const std::vector<products::ChoiceRules>& rules,
                      products::ChosenLogit* choices) const = 0;
  // The same product with only these outputs, in this order.
  virtual std::unique_ptr<Linear> Select(const std::vector<int64_t>& outputs) const = 0;
};

// Identifies a product of a model.
struct LinearSpec {
  std::string scope;  // of its variables: "decoder/layer_0/ffn/linear_1"
  Activation activation = Activation::kNone;
};
using LinearMaker = std::function<std::unique_ptr<Linear>(const LinearSpec& spec)>;

}  // namespace ct2triton
