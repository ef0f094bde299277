// SPDX-License-Identifier: Apache-2.0
//
// Cuts a text into segments that are translated separately, and joins their translations.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {

enum class Split {
  kSentences,  // at the ends of sentences and of lines
  kLines,      // at the ends of lines
  kNone,
};

// The pieces of a text as byte ranges, in order. Only white space lies outside of the pieces, and
// no piece begins or ends with it, so no other bytes are lost, whatever the input. `language`: any
// code of the text's language; it selects the abbreviations.
//
// In doubt it does not cut: two sentences translate well as one piece, half a sentence does not.
// Quoted or bracketed parts of up to 400 bytes stay whole. Thai and Lao have no sign for the end of
// a sentence.
std::vector<Span> Segment(std::string_view text, std::string_view language, Split split);

// Returns approximately how many bytes of the beginning of a text fit; all of it if it fits.
using Fitting = std::function<size_t(std::string_view)>;

// Cuts the first part from a piece that is too long: at a clause mark, else at a space, else
// between code points. A single code point is always a part. `fitting` is called with `tried`
// bytes, then with more while all of them fit. Part and rest are trimmed like pieces.
Span TakePart(std::string_view text, Span* rest, size_t tried, const Fitting& fitting);

// The text between the translations of two pieces whose sources are separated by `gap`: `gap`
// itself, but nothing for a single space in Chinese and Japanese, and a space in other languages if
// `gap` is empty.
std::string GapInTarget(std::string_view gap, std::string_view target_language);

}  // namespace ct2triton
