// SPDX-License-Identifier: Apache-2.0
//
// Cuts a text into what is translated in one piece, and says how the pieces join again.
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

// The pieces of a text as byte ranges, in order. Between two pieces, before the first and behind
// the last there is white space only, and no piece begins or ends with any: nothing is lost, for
// any bytes. `language`: any code of the text's language; it chooses the abbreviations.
//
// Rather too few cuts than too many: two sentences translate well in one piece, half a sentence
// does not. Quotes and brackets of some hundred bytes stay whole. Thai and Lao have no sign for the
// end of a sentence.
std::vector<Span> Segment(std::string_view text, std::string_view language, Split split);

// Cuts a piece that is too long, at clause marks, else at spaces, else between code points. `fits`:
// whether a part is short enough; if it is, so are shorter ones. A single code point is a part
// whatever it says. The parts are trimmed like pieces.
std::vector<Span> CutToFit(std::string_view text, Span piece,
                           const std::function<bool(std::string_view)>& fits);

// What stands between the translations of two pieces that have `gap` between them: the same, but
// in Chinese and Japanese no single space, and elsewhere a space where there was nothing.
std::string GapInTarget(std::string_view gap, std::string_view target_language);

}  // namespace ct2triton
