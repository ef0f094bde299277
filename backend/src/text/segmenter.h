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

// The pieces of a text as byte ranges, in order. Between two pieces, before the first and after
// the last there is white space only, and no piece begins or ends with any: nothing is lost, for
// any bytes. `language`: any code of the text's language; it chooses the abbreviations.
//
// Rather too few cuts than too many: two sentences translate well in one piece, half a sentence
// does not. Quotes and brackets of some hundred bytes stay whole. Thai and Lao have no sign for the
// end of a sentence.
std::vector<Span> Segment(std::string_view text, std::string_view language, Split split);

// How many bytes of the beginning of a text fit, about; all of it where it fits.
using Fitting = std::function<size_t(std::string_view)>;

// Takes the first part off a piece that is too long; it ends at a clause mark, else at a space,
// else between code points. A single code point is a part whatever `fitting` says, which is asked
// about `tried` bytes, then about more while all of them fit. Part and rest are trimmed like
// pieces.
Span TakePart(std::string_view text, Span* rest, size_t tried, const Fitting& fitting);

// What stands between the translations of two pieces that have `gap` between them: the same, but
// in Chinese and Japanese no single space, and elsewhere a space where there was nothing.
std::string GapInTarget(std::string_view gap, std::string_view target_language);

}  // namespace ct2triton
