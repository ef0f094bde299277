// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ct2triton {

// Whether a code point is part of a word: a letter, mark, digit or joining punctuation, as \w in
// Unicode's rules for regular expressions.
bool IsWordCharacter(char32_t point);

}  // namespace ct2triton
