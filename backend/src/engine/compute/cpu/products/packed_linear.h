// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compute/cpu/products/choice.h"
#include "engine/compute/cpu/products/kernel.h"
#include "engine/compute/cpu/products/page_memory.h"
#include "engine/compute/cpu/products/quantized_rows.h"

namespace ct2triton::products {

// A linear layer's variables, as CTranslate2 keeps them.
struct LinearWeights {
  WeightType type;
  const void* weight;  // [outputs, inputs]
  const float* scale;  // [outputs]: what a weight was multiplied by; null: they are floats
  const float* bias;   // [outputs], or null
  int64_t outputs;
  int64_t inputs;
};

// Some rows of weights that make a panel, one after the other.
struct PanelRows {
  const std::byte* data;
  int64_t bytes;  // of a row
  int64_t count;
};

// Products with the weights packed once for one kernel, and what follows them in one pass: no sum
// is ever written. With int8 weights, and the rounding that the loaded CTranslate2 has, outputs are
// those of its Dense layer, bit by bit. With floats they differ in last bits, for it adds in
// another order; but a row's bits do not depend on the other rows. Immutable: any threads may share
// one.
class PackedLinear {
 public:
  // Copies what it needs of `weights`, whose type is the kernel's; `shared`: see PageMemory. Throws
  // Error(kUnsupported) for a size that its sums cannot take.
  PackedLinear(const LinearWeights& weights, const Kernel& kernel, SharedPages* shared = nullptr);

  // A layer whose outputs are all filled before it is used, each once: `count` from `first` on,
  // which begins a panel, up to the end of one or the last output. Several threads may fill others
  // at a time. rows: [count, inputs]; scales, bias: [count], or null, see LinearWeights.
  PackedLinear(const Kernel& kernel, int64_t outputs, int64_t inputs,
               SharedPages* shared = nullptr);
  void Fill(int64_t first, int64_t count, const std::byte* rows, const float* scales,
            const float* bias);

  // out: [rows, outputs]. residual: the same shape, added last; null for none; may be `out`.
  // `in` must be made for this layer's kernel and inputs, here and below.
  void Apply(const QuantizedRows& in, float* out, Activation activation = Activation::kNone,
             const float* residual = nullptr) const;

  // Each row's greedy choice, without writing the logits. rules, choices: one per row.
  void Choose(const QuantizedRows& in, const std::vector<ChoiceRules>& rules,
              Choice* choices) const;

  // A layer of these outputs of this one, in this order: the candidates of a vocabulary list.
  PackedLinear Select(const std::vector<int64_t>& outputs) const;

  // Writes the weights of one output as they were before: [inputs].
  void UnpackRow(int64_t output, void* weights) const;

  const Kernel& kernel() const { return *kernel_; }
  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  float scale(int64_t output) const { return scale_[static_cast<size_t>(output)]; }
  // Memory of the packed copy.
  size_t bytes() const;

 private:
  void FillGroups(const PanelRows& rows, int64_t first);
  // Where the group of inputs of an output lies in its panel.
  std::byte* Group(int64_t output, int64_t group) const;
  int64_t group_bytes() const { return int64_t{kernel_->group} * kernel_->weight_bytes; }
  void CheckRows(const QuantizedRows& in) const;
  void CheckOutput(int64_t output) const;
  PanelView view() const;

  const Kernel* kernel_;
  int64_t outputs_;
  int64_t inputs_;
  int64_t groups_;
  PageMemory weights_;
  std::vector<int32_t> start_;
  std::vector<float> scale_;
  std::vector<float> bias_;
};

}  // namespace ct2triton::products
