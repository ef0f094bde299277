// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ct2triton {

// The names of the tensors on the wire.
namespace tensor {
inline constexpr char kInputIds[] = "INPUT_IDS";
inline constexpr char kTargetPrefix[] = "TARGET_PREFIX";
inline constexpr char kDraftIds[] = "DRAFT_IDS";
inline constexpr char kInputLengths[] = "INPUT_LENGTHS";
inline constexpr char kPrefixLengths[] = "PREFIX_LENGTHS";
inline constexpr char kOutputIds[] = "OUTPUT_IDS";
inline constexpr char kOutputLengths[] = "OUTPUT_LENGTHS";
inline constexpr char kHypotheses[] = "HYPOTHESES";
inline constexpr char kHypothesisLengths[] = "HYPOTHESIS_LENGTHS";
inline constexpr char kScores[] = "SCORES";
inline constexpr char kFinishReason[] = "FINISH_REASON";
inline constexpr char kDraftTokensKept[] = "DRAFT_TOKENS_KEPT";
inline constexpr char kAlignments[] = "ALIGNMENTS";
inline constexpr char kQuality[] = "QUALITY";
inline constexpr char kQualityFlags[] = "QUALITY_FLAGS";
// Tensors of models that take text, named as in Triton's backends for language models.
inline constexpr char kTextInput[] = "text_input";
inline constexpr char kSourceLanguage[] = "source_language";
inline constexpr char kTargetLanguages[] = "target_languages";
inline constexpr char kTextPrefix[] = "target_prefix";
inline constexpr char kDraft[] = "draft";
inline constexpr char kStream[] = "stream";
inline constexpr char kTextOutput[] = "text_output";
inline constexpr char kScore[] = "score";
inline constexpr char kTextFinishReason[] = "finish_reason";
inline constexpr char kNumInputTokens[] = "num_input_tokens";
inline constexpr char kNumOutputTokens[] = "num_output_tokens";
inline constexpr char kTextHypotheses[] = "hypotheses";
inline constexpr char kHypothesisScores[] = "hypothesis_scores";
inline constexpr char kSourceRanges[] = "source_ranges";
inline constexpr char kTargetRanges[] = "target_ranges";
inline constexpr char kTextAlignments[] = "alignments";
inline constexpr char kTextQuality[] = "quality";
inline constexpr char kTextQualityFlags[] = "quality_flags";
// Tensors of models that can stream text: the target that a response belongs to.
inline constexpr char kTargetIndex[] = "target_index";
inline constexpr char kTargetLanguage[] = "target_language";
}  // namespace tensor

// What config.pbtxt may declare for one tensor of the protocol. `dims` are without the batch
// dimension; -1 allows any length.
struct TensorRule {
  std::string_view name;
  std::string_view data_type;  // what auto-complete writes; ids may be of any integer type
  bool holds_ids = false;
  std::vector<std::int64_t> dims;
  bool required = false;            // the config must declare it
  bool may_be_optional = false;     // a request may leave it out
  std::string_view companion = {};  // tensor that must be declared beside it
};

// Tensors of token-ID models, or of text models.
const std::vector<TensorRule>& InputRules(bool of_text = false);
const std::vector<TensorRule>& OutputRules(bool of_text = false);
// Outputs of models that can stream text: a response has all translations, or a part of one.
const std::vector<TensorRule>& StreamOutputRules();

// The rule of this name, or nullptr.
const TensorRule* FindRule(const std::vector<TensorRule>& rules, std::string_view name);

// The largest value of one of Triton's integer types ("TYPE_INT32"), at most that of int64; nullopt
// for other types.
std::optional<std::int64_t> LargestInteger(std::string_view data_type);

}  // namespace ct2triton
