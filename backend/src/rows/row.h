// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ct2triton {

using Ids = std::vector<int64_t>;  // vocabulary ids of one sequence
size_t HashIds(const Ids& ids) noexcept;

enum class FinishReason {
  kStop,    // the search chose an end token
  kLength,  // the decoding limit ended it
  kEmpty,   // nothing to translate: returns the prefix
  kCut,     // the source was cut to max_input_length before it was translated
};

constexpr size_t kFinishReasons = 4;

// The word in responses: "stop", "length", "empty", "cut".
const char* FinishReasonName(FinishReason reason);

struct Hypothesis {
  Ids ids;  // the target prefix included, as CTranslate2 returns it
  float score = 0;
  FinishReason finish = FinishReason::kStop;
  // For each id the aligned source position; -1 for forced ids, and where it is unknown.
  // None unless the row asks for it.
  Ids alignments = {};
};

struct RowResult {
  std::vector<Hypothesis> hypotheses;  // best first, never empty
  int64_t steps = 0;                   // decode steps, including forced tokens and the end token
  int64_t draft_tokens_kept = 0;       // accepted draft tokens
  // Whether a beam search that may run beyond limits was still running at this row's limit.
  bool reached_limit = false;
};

}  // namespace ct2triton
