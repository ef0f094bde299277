// SPDX-License-Identifier: Apache-2.0
//
// The signs that end sentences and enclose parts of them, in all scripts.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {

enum class Mark {
  kNone,
  kFullStop,  // . which also marks abbreviations, ordinals and decimals
  kEllipsis,  // the sentence may go on after it
  kSpaced,    // ! ? and similar signs: end a sentence before white space only
  kFirm,      // of scripts without spaces: always ends a sentence
};

Mark MarkOf(char32_t point);
bool IsClosing(char32_t point);  // quotes and brackets that may follow a terminator
bool IsOpening(char32_t point);  // quotes, brackets and dashes that may begin a sentence

// The outermost quoted and bracketed parts of one line, in order. Parts that are not closed or are
// longer than `most_bytes` are left out.
std::vector<Span> EnclosedParts(std::string_view line, size_t most_bytes);

}  // namespace ct2triton
