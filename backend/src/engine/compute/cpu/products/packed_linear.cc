// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/products/packed_linear.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "engine/compute/cpu/products/round_up.h"
#include "engine/team.h"
#include "error.h"

namespace ct2triton::products {
namespace {

// 255 * 128 * inputs, the largest sum, must fit an int32, and so must its start.
constexpr int64_t kMaxInputs = 65536;

// Weights that are worth the cost of sharing: some microseconds of reading.
constexpr size_t kLeastBytes = size_t{32} << 10;

// Parts of a choice: of this many outputs, or more so that there are not too many.
constexpr int64_t kPartOutputs = 2048;
constexpr int64_t kMostParts = 64;

// Interleaves the groups of all rows; the rest of the last group is zeros.
template <size_t kBytes>
void PackGroups(const PanelRows& rows, int64_t width, std::byte* to) {
  constexpr auto kGroup = static_cast<int64_t>(kBytes);
  const int64_t whole = rows.bytes / kGroup;
  for (int64_t group = 0; group < whole; ++group) {
    const std::byte* from = rows.data + group * kGroup;
    for (int64_t row = 0; row < rows.count; ++row) {
      std::memcpy(to + (group * width + row) * kGroup, from + row * rows.bytes, kBytes);
    }
  }
  const int64_t left = rows.bytes - whole * kGroup;
  if (left == 0) return;
  for (int64_t row = 0; row < rows.count; ++row) {
    std::byte* last = to + (whole * width + row) * kGroup;
    std::memset(last, 0, kBytes);
    std::memcpy(last, rows.data + row * rows.bytes + whole * kGroup, static_cast<size_t>(left));
  }
}

// Unpacks an output whose groups are `stride` bytes apart.
template <size_t kBytes>
void CopyGroups(const std::byte* from, int64_t stride, int64_t groups, std::byte* to) {
  for (int64_t group = 0; group < groups; ++group) {
    std::memcpy(to + group * int64_t{kBytes}, from + group * stride, kBytes);
  }
}

int32_t Sum(const std::byte* bytes, int64_t count) {
  const auto* values = reinterpret_cast<const int8_t*>(bytes);
  return std::accumulate(values, values + count, int32_t{0});
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
  weights_ = PageMemory(padded * static_cast<size_t>(groups_ * group_bytes()), shared);
  start_.resize(padded, 0);
  scale_.resize(padded, 1.0f);
  // so that a padding output is never the best one.
  bias_.resize(padded, -std::numeric_limits<float>::infinity());
}

PackedLinear::PackedLinear(const LinearWeights& weights, const Kernel& kernel, SharedPages* shared)
    : PackedLinear(kernel, weights.outputs, weights.inputs, shared) {
  Fill(0, outputs_, static_cast<const std::byte*>(weights.weight), weights.scale, weights.bias);
}

void PackedLinear::Fill(int64_t first, int64_t count, const std::byte* rows, const float* scales,
                        const float* bias) {
  const int64_t width = kernel_->panel_outputs;
  const int64_t row_bytes = inputs_ * kernel_->weight_bytes;
  for (int64_t begin = 0; begin < count; begin += width) {
    const PanelRows panel{rows + begin * row_bytes, row_bytes, std::min(width, count - begin)};
    FillGroups(panel, first + begin);
    for (int64_t i = begin; i < begin + panel.count; ++i) {
      const auto at = static_cast<size_t>(first + i);
      if (kernel_->shifted) start_[at] = -128 * Sum(rows + i * row_bytes, inputs_);
      if (scales != nullptr) scale_[at] = scales[i];
      bias_[at] = bias == nullptr ? -0.0f : bias[i];
    }
  }
}

void PackedLinear::FillGroups(const PanelRows& rows, int64_t first) {
  std::byte* to = Group(first, 0);
  const auto width = static_cast<int64_t>(kernel_->panel_outputs);
  if (rows.count < width) {
    std::memset(to, 0, static_cast<size_t>(groups_ * width * group_bytes()));
  }
  switch (group_bytes()) {
    case 4:
      return PackGroups<4>(rows, width, to);
    case 2:
      return PackGroups<2>(rows, width, to);
    default:
      return PackGroups<1>(rows, width, to);
  }
}

void PackedLinear::Apply(const QuantizedRows& in, float* out, Activation activation,
                         const float* residual) const {
  CheckRows(in);
  const auto count = static_cast<size_t>(panels());
  const size_t least = std::max<size_t>(1, kLeastBytes * count / weights_.bytes());
  Team::Split(count, least, [&](size_t begin, size_t end, size_t /*member*/) {
    kernel_->write(View(static_cast<int64_t>(begin), static_cast<int64_t>(end)), in.view(),
                   {out, residual, activation});
  });
}

void PackedLinear::Choose(const QuantizedRows& in, const std::vector<ChoiceRules>& rules,
                          ChosenLogit* choices) const {
  CheckRows(in);
  for (const auto& row : rules) {
    for (const int64_t output : row.forbidden) CheckOutput(output);
  }
  const int64_t width = kernel_->panel_outputs;
  const int64_t least = RoundUp(kPartOutputs, width) / width;
  const int64_t length = std::max(least, RoundUp(panels(), kMostParts) / kMostParts);  // in panels
  const auto parts = static_cast<size_t>(RoundUp(panels(), length) / length);
  SplitChoice split(rules, parts, Team::MostMembers(), kernel_->panel_outputs);
  Team::Split(parts, 1, [&](size_t begin, size_t end, size_t member) {
    for (size_t part = begin; part < end; ++part) {
      const int64_t first = static_cast<int64_t>(part) * length;
      const int64_t last = std::min(first + length, panels());
      kernel_->choose(View(first, last), in.view(), split.Begin(member, first * width));
      split.End(member, part);
    }
  });
  split.Finish(choices);
}

PackedLinear PackedLinear::Select(const std::vector<int64_t>& outputs) const {
  PackedLinear selected(*kernel_, static_cast<int64_t>(outputs.size()), inputs_);
  std::memset(selected.weights_.data(), 0, selected.weights_.bytes());  // padding
  for (size_t to = 0; to < outputs.size(); ++to) {
    const int64_t from = outputs[to];
    CheckOutput(from);
    for (int64_t group = 0; group < groups_; ++group) {
      std::memcpy(selected.Group(static_cast<int64_t>(to), group), Group(from, group),
                  static_cast<size_t>(group_bytes()));
    }
    selected.start_[to] = start_[static_cast<size_t>(from)];
    selected.scale_[to] = scale_[static_cast<size_t>(from)];
    selected.bias_[to] = bias_[static_cast<size_t>(from)];
  }
  return selected;
}

void PackedLinear::UnpackRow(int64_t output, void* weights) const {
  auto* to = static_cast<std::byte*>(weights);
  const int64_t bytes = inputs_ * kernel_->weight_bytes;
  const int64_t whole = bytes / group_bytes();
  const int64_t stride = kernel_->panel_outputs * group_bytes();
  const std::byte* from = Group(output, 0);
  switch (group_bytes()) {
    case 4:
      CopyGroups<4>(from, stride, whole, to);
      break;
    case 2:
      CopyGroups<2>(from, stride, whole, to);
      break;
    default:
      CopyGroups<1>(from, stride, whole, to);
  }
  const int64_t left = bytes - whole * group_bytes();
  std::memcpy(to + bytes - left, from + whole * stride, static_cast<size_t>(left));
}

size_t PackedLinear::bytes() const {
  return weights_.bytes() + start_.size() * (sizeof start_[0] + sizeof scale_[0] + sizeof bias_[0]);
}

std::byte* PackedLinear::Group(int64_t output, int64_t group) const {
  const int64_t width = kernel_->panel_outputs;
  const int64_t panel = output / width;
  return weights_.data() + ((panel * groups_ + group) * width + output % width) * group_bytes();
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

PanelView PackedLinear::View(int64_t first_panel, int64_t end_panel) const {
  const int64_t width = kernel_->panel_outputs;
  return {
      weights_.data(), start_.data(), scale_.data(),       bias_.data(),
      outputs_,        groups_,       first_panel * width, std::min(end_panel * width, outputs_)};
}

}  // namespace ct2triton::products
