// SPDX-License-Identifier: Apache-2.0
//
// Plan of one text: its sentences and rows, from which the answers are joined for each target
// language.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {

// A request's settings for one translation of a text.
struct WantedTarget {
  std::string_view language;  // as named; empty: not given
  std::string_view prefix;    // forced beginning of the translation
  std::string_view draft;     // expected translation, including the prefix
};

// A sentence, or a part of one that was too long.
struct PlannedSentence {
  Span span;           // in the text
  bool split = false;  // part of a sentence that was too long
  bool sent = false;   // it has rows: one per target, in order
  size_t first_row = 0;
  std::vector<size_t> input_tokens = {};  // of each of its rows
};

struct TextPlan {
  std::string text;
  std::string source;                // the model's language code, or the given name if it has none
  std::vector<std::string> targets;  // language codes of the targets
  std::vector<PlannedSentence> sentences;
};

}  // namespace ct2triton
