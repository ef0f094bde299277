// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ct2triton {

// Whether a code point is a part of words: letters, marks, digits, joining punctuation. It is what
// Unicode's rules for regular expressions call \w.
bool IsWordCharacter(char32_t point);

}  // namespace ct2triton
