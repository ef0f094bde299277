// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {

// Where pieces are in the text that they were made of, in bytes. Making pieces changes characters
// (NFKC) and spaces, so words are compared: a piece is found to the character in a word that kept
// its number of characters, else it has the whole word. Where the number of words has changed, it
// has the whole text. A piece that is only space has an empty span.
//
// `joined`: the pieces one after the other, with plain spaces. `pieces`: where each is in that.
std::vector<Span> PiecePlaces(std::string_view text, std::string_view joined,
                              const std::vector<Span>& pieces);

}  // namespace ct2triton
