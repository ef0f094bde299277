// SPDX-License-Identifier: Apache-2.0
#include "engine/products/packed_linear.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "engine/products/round_up.h"
#include "error.h"

namespace ct2triton::products {
namespace {

// 255 * 128 * inputs, the largest sum, must fit an int32, and so must its start.
constexpr int64_t kMaxInputs = 65536;

// Of an output, whose groups lie `stride` bytes apart.
template <size_t kGroup>
void CopyGroups(const int8_t* from, int64_t stride, int64_t groups, int8_t* to) {
  for (int64_t group = 0; group < groups; ++group) {
    std::memcpy(to + group * int64_t{kGroup}, from + group * stride, kGroup);
  }
}

}  // namespace

PackedLinear::PackedLinear(const Kernel& kernel, int64_t outputs, int64_t inputs,
                           SharedPages* shared)
    : kernel_(&kernel),
      outputs_(outputs),
      inputs_(inputs),
      groups_(RoundUp<int64_t>(inputs, kernel.group) / kernel.group) {
  if (outputs < 1 || inputs < 1 || inputs > kMaxInputs) {
    throw Error(ErrorCode::kUnsupported, "packed weights: a layer of " + std::to_string(outputs) +
                                             " outputs and " + std::to_string(inputs) +
                                             " inputs; allowed are 1 output or more and 1 to " +
                                             std::to_string(kMaxInputs) + " inputs");
  }
  const auto padded = static_cast<size_t>(RoundUp<int64_t>(outputs, kernel.panel_outputs));
  weights_ = PageMemory(padded * static_cast<size_t>(groups_ * kernel.group), shared);
  start_.resize(padded, 0);
  scale_.resize(padded, 1.0f);
  // An output that is padding is never the best one.
  bias_.resize(padded, -std::numeric_limits<float>::infinity());
}

PackedLinear::PackedLinear(const LinearWeights& weights, const Kernel& kernel, SharedPages* shared)
    : PackedLinear(kernel, weights.outputs, weights.inputs, shared) {
  for (int64_t output = 0; output < outputs_; ++output) {
    const int8_t* row = weights.weight + output * inputs_;
    int32_t sum = 0;
    for (int64_t input = 0; input < inputs_; input += kernel.group) {
      const int64_t count = std::min<int64_t>(kernel.group, inputs_ - input);
      std::memcpy(Group(output, input / kernel.group), row + input, static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) sum += row[input + i];
    }
    const auto at = static_cast<size_t>(output);
    if (kernel.shifted) start_[at] = -128 * sum;
    scale_[at] = weights.scale[output];
    bias_[at] = weights.bias == nullptr ? -0.0f : weights.bias[output];
  }
}

void PackedLinear::Apply(const QuantizedRows& in, float* out, Activation activation,
                         const float* residual) const {
  CheckRows(in);
  kernel_->write(view(), in.view(), {out, residual, activation});
}

void PackedLinear::Choose(const QuantizedRows& in, const std::vector<ChoiceRules>& rules,
                          Choice* choices) const {
  CheckRows(in);
  std::vector<ChoiceState> states;
  states.reserve(rules.size());
  for (const auto& row : rules) {
    for (const int64_t output : row.forbidden) CheckOutput(output);
    states.push_back(StartChoice(row));
  }
  kernel_->choose(view(), in.view(), states.data());
  for (size_t row = 0; row < states.size(); ++row) {
    choices[row] = FinishChoice(states[row], kernel_->panel_outputs);
  }
}

PackedLinear PackedLinear::Select(const std::vector<int64_t>& outputs) const {
  PackedLinear selected(*kernel_, static_cast<int64_t>(outputs.size()), inputs_);
  for (size_t to = 0; to < outputs.size(); ++to) {
    const int64_t from = outputs[to];
    CheckOutput(from);
    for (int64_t group = 0; group < groups_; ++group) {
      std::memcpy(selected.Group(static_cast<int64_t>(to), group), Group(from, group),
                  static_cast<size_t>(kernel_->group));
    }
    selected.start_[to] = start_[static_cast<size_t>(from)];
    selected.scale_[to] = scale_[static_cast<size_t>(from)];
    selected.bias_[to] = bias_[static_cast<size_t>(from)];
  }
  return selected;
}

void PackedLinear::Unpack(int8_t* weights) const {
  for (int64_t output = 0; output < outputs_; ++output) {
    UnpackRow(output, weights + output * inputs_);
  }
}

void PackedLinear::UnpackRow(int64_t output, int8_t* weights) const {
  const int64_t whole = inputs_ / kernel_->group;
  const int64_t stride = int64_t{kernel_->panel_outputs} * kernel_->group;
  const int8_t* from = Group(output, 0);
  switch (kernel_->group) {
    case 4:
      CopyGroups<4>(from, stride, whole, weights);
      break;
    case 2:
      CopyGroups<2>(from, stride, whole, weights);
      break;
    default:
      CopyGroups<1>(from, stride, whole * kernel_->group, weights);
  }
  const int64_t left = inputs_ - whole * kernel_->group;
  std::memcpy(weights + inputs_ - left, from + whole * stride, static_cast<size_t>(left));
}

size_t PackedLinear::bytes() const {
  return weights_.bytes() + start_.size() * (sizeof start_[0] + sizeof scale_[0] + sizeof bias_[0]);
}

int8_t* PackedLinear::Group(int64_t output, int64_t group) const {
  const int64_t width = kernel_->panel_outputs;
  const int64_t panel = output / width;
  return reinterpret_cast<int8_t*>(weights_.data()) +
         ((panel * groups_ + group) * width + output % width) * kernel_->group;
}

void PackedLinear::CheckRows(const QuantizedRows& in) const {
  if (&in.kernel() == kernel_ && in.inputs() == inputs_) return;
  throw Error(ErrorCode::kInternal, "packed weights: rows of " + std::to_string(in.inputs()) +
                                        " inputs for kernel " + in.kernel().name + ", a layer of " +
                                        std::to_string(inputs_) + " for " + kernel_->name);
}

void PackedLinear::CheckOutput(int64_t output) const {
  if (output >= 0 && output < outputs_) return;
  throw Error(ErrorCode::kInternal, "packed weights: output " + std::to_string(output) +
                                        " of a layer of " + std::to_string(outputs_));
}

PanelView PackedLinear::view() const {
  return {reinterpret_cast<const int8_t*>(weights_.data()),
          start_.data(),
          scale_.data(),
          bias_.data(),
          outputs_,
          groups_};
}

}  // namespace ct2triton::products
