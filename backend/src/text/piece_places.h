// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {

// Spans of pieces in the text that they were made from, in bytes. Splitting changes characters
// (NFKC) and spaces, so words are compared: the span of a piece is exact in a word that kept its
// number of characters, else it is the whole word. If the number of words has changed, its span is
// the whole text. A piece of only space has an empty span.
//
// `joined`: the concatenated pieces, with plain spaces. `pieces`: span of each piece in `joined`.
std::vector<Span> PiecePlaces(std::string_view text, std::string_view joined,
                              const std::vector<Span>& pieces);

}  // namespace ct2triton
