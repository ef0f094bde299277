// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compute/cpu/products/choice.h"
#include "engine/compute/cpu/products/kernel.h"
#include "engine/compute/cpu/products/page_memory.h"
#include "engine/compute/cpu/products/quantized_rows.h"

namespace ct2triton::products {

// A linear layer's variables in CTranslate2's layout.
struct LinearWeights {
  WeightType type;
  const void* weight;  // [outputs, inputs]
  const float* scale;  // [outputs]: factor of the weights; null: weights are floats
  const float* bias;   // [outputs], or null
  int64_t outputs;
  int64_t inputs;
};

// Consecutive rows of weights that make a panel.
struct PanelRows {
  const std::byte* data;
  int64_t bytes;  // of a row
  int64_t count;
};

// Products with weights packed once for one kernel. Bias, activation and residual are applied in
// the same pass, so sums are never written. With int8 weights and the loaded CTranslate2's
// rounding, outputs are bit-identical to its Dense layer. With floats the last bits differ, because
// CTranslate2 adds in another order, but a row's bits do not depend on the other rows. Immutable
// and thread-safe.
class PackedLinear {
 public:
  // Copies `weights`, whose type must be the kernel's; `shared`: see PageMemory. Throws
  // Error(kUnsupported) if its sums could overflow.
  PackedLinear(const LinearWeights& weights, const Kernel& kernel, SharedPages* shared = nullptr);

  // A layer to be filled before it is used, each output once. Fill: `count` outputs from `first`
  // on, which begins a panel, up to the end of a panel or the last output. Threads may fill
  // different outputs at once. rows: [count, inputs]; scales, bias: [count], or null, see
  // LinearWeights.
  PackedLinear(const Kernel& kernel, int64_t outputs, int64_t inputs,
               SharedPages* shared = nullptr);
  void Fill(int64_t first, int64_t count, const std::byte* rows, const float* scales,
            const float* bias);

  // out: [rows, outputs]. residual: the same shape, added last; null for none; may be `out`.
  // `in` must be made for this layer's kernel and inputs, here and below.
  void Apply(const QuantizedRows& in, float* out, Activation activation = Activation::kNone,
             const float* residual = nullptr) const;

  // Each row's greedy choice, without writing the logits. rules, choices: one per row. The outputs
  // are always computed in the same parts, so totals do not depend on the threads that help.
  void Choose(const QuantizedRows& in, const std::vector<ChoiceRules>& rules,
              ChosenLogit* choices) const;

  // A layer with only these outputs, in this order: the candidates of a vocabulary map.
  PackedLinear Select(const std::vector<int64_t>& outputs) const;

  // Writes the original weights of one output: [inputs].
  void UnpackRow(int64_t output, void* weights) const;

  const Kernel& kernel() const { return *kernel_; }
  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  float scale(int64_t output) const { return scale_[static_cast<size_t>(output)]; }
  // Memory of the packed copy.
  size_t bytes() const;

 private:
  void FillGroups(const PanelRows& rows, int64_t first);
  // Address of an output's group of inputs in its panel.
  std::byte* Group(int64_t output, int64_t group) const;
  int64_t group_bytes() const { return int64_t{kernel_->group} * kernel_->weight_bytes; }
  void CheckRows(const QuantizedRows& in) const;
  void CheckOutput(int64_t output) const;
  int64_t panels() const { return static_cast<int64_t>(start_.size()) / kernel_->panel_outputs; }
  PanelView View(int64_t first_panel, int64_t end_panel) const;

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
