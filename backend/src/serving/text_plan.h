// SPDX-License-Identifier: Apache-2.0
//
// How one text becomes rows, and their answers one text again for each target language.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {

// What a request says of one translation of a text.
struct WantedTarget {
  std::string_view language;  // as named; empty: not given
  std::string_view prefix;    // how the translation begins in any case
  std::string_view draft;     // what the translation is expected to be, its prefix included
};

// A sentence, or a part of one that was too long.
struct PlannedSentence {
  Span span;           // in the text
  bool split = false;  // part of a sentence that was too long
  bool sent = false;   // it has rows: one for each target, in their order
  size_t first_row = 0;
  std::vector<size_t> input_tokens = {};  // of each of its rows, as they are run
};

struct TextPlan {
  std::string text;
  std::string source;                // the model's code, or as named where it has none
  std::vector<std::string> targets;  // the same, of each target
  std::vector<PlannedSentence> sentences;
};

}  // namespace ct2triton
