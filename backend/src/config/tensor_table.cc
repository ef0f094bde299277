// SPDX-License-Identifier: Apache-2.0
#include "config/tensor_table.h"

#include <limits>
#include <utility>

namespace ct2triton {
namespace {

constexpr std::string_view kInt32 = "TYPE_INT32";
constexpr std::string_view kString = "TYPE_STRING";
constexpr std::string_view kFloat = "TYPE_FP32";
constexpr std::string_view kBool = "TYPE_BOOL";
constexpr std::string_view kUint32 = "TYPE_UINT32";

template <class Integer>
constexpr std::int64_t Largest() {
  return static_cast<std::int64_t>(std::numeric_limits<Integer>::max());
}

}  // namespace

const std::vector<TensorRule>& InputRules(bool of_text) {
  static const std::vector<TensorRule> text_rules = {
      {tensor::kTextInput, kString, false, {1}, true, false},
      {tensor::kSourceLanguage, kString, false, {1}, false, true},
      {tensor::kTargetLanguages, kString, false, {-1}, false, true},
      {tensor::kTextPrefix, kString, false, {-1}, false, true},
      {tensor::kDraft, kString, false, {-1}, false, true},
      {tensor::kStream, kBool, false, {1}, false, true},
  };
  static const std::vector<TensorRule> rules = {
      {tensor::kInputIds, kInt32, true, {-1}, true, false},
      {tensor::kTargetPrefix, kInt32, true, {-1}, false, true},
      {tensor::kDraftIds, kInt32, true, {-1}, false, true},
      {tensor::kInputLengths, kInt32, false, {1}, false, true},
      {tensor::kPrefixLengths, kInt32, false, {1}, false, true, tensor::kTargetPrefix},
  };
  return of_text ? text_rules : rules;
}

const std::vector<TensorRule>& OutputRules(bool of_text) {
  static const std::vector<TensorRule> text_rules = {
      {tensor::kTextOutput, kString, false, {-1}, true},
      {tensor::kScore, kFloat, false, {-1}},
      {tensor::kTextFinishReason, kString, false, {-1}},
      {tensor::kNumInputTokens, kUint32, false, {-1}},
      {tensor::kNumOutputTokens, kUint32, false, {-1}},
      {tensor::kTextHypotheses, kString, false, {-1, -1}},
      {tensor::kHypothesisScores, kFloat, false, {-1, -1}},
      {tensor::kSourceRanges, kInt32, false, {-1, 2}},
      {tensor::kTargetRanges, kInt32, false, {-1, -1, 2}},
      {tensor::kTextAlignments, kInt32, false, {-1, -1, 4}},
      {tensor::kTextQuality, kFloat, false, {-1}},
      {tensor::kTextQualityFlags, kString, false, {-1}},
  };
  static const std::vector<TensorRule> rules = {
      {tensor::kOutputIds, kInt32, true, {-1}, true},
      {tensor::kOutputLengths, kInt32, false, {1}},
      {tensor::kHypotheses, kInt32, true, {-1, -1}},
      {tensor::kHypothesisLengths, kInt32, false, {-1}, false, false, tensor::kHypotheses},
      {tensor::kScores, kFloat, false, {-1}},
      {tensor::kFinishReason, kString, false, {-1}},
      {tensor::kDraftTokensKept, kInt32, false, {1}},
      {tensor::kAlignments, kInt32, false, {-1}},
      {tensor::kQuality, kFloat, false, {-1}},
      {tensor::kQualityFlags, kString, false, {-1}},
  };
  return of_text ? text_rules : rules;
}

const std::vector<TensorRule>& StreamOutputRules() {
  static const std::vector<TensorRule> rules = {
      {tensor::kTextOutput, kString, false, {-1}, true},
      {tensor::kTargetIndex, kUint32, false, {-1}},
      {tensor::kTargetLanguage, kString, false, {-1}},
      {tensor::kTextFinishReason, kString, false, {-1}},
      {tensor::kNumInputTokens, kUint32, false, {-1}},
      {tensor::kNumOutputTokens, kUint32, false, {-1}},
      {tensor::kTextQuality, kFloat, false, {-1}},
      {tensor::kTextQualityFlags, kString, false, {-1}},
  };
  return rules;
}

const TensorRule* FindRule(const std::vector<TensorRule>& rules, std::string_view name) {
  for (const TensorRule& rule : rules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

std::optional<std::int64_t> LargestInteger(std::string_view data_type) {
  static constexpr std::pair<std::string_view, std::int64_t> kTypes[] = {
      {"TYPE_INT8", Largest<std::int8_t>()},   {"TYPE_UINT8", Largest<std::uint8_t>()},
      {"TYPE_INT16", Largest<std::int16_t>()}, {"TYPE_UINT16", Largest<std::uint16_t>()},
      {"TYPE_INT32", Largest<std::int32_t>()}, {"TYPE_UINT32", Largest<std::uint32_t>()},
      {"TYPE_INT64", Largest<std::int64_t>()}, {"TYPE_UINT64", Largest<std::int64_t>()},
  };
  for (const auto& [name, largest] : kTypes) {
    if (name == data_type) return largest;
  }
  return std::nullopt;
}

}  // namespace ct2triton
