// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace ct2triton {

// Bytes of the first character of the text; 0 if the text is empty or begins with invalid UTF-8 (a
// stray or missing byte, half a surrogate pair, an overlong form, or a value above U+10FFFF).
size_t Utf8Character(std::string_view text);

// Offset of the first byte that belongs to no character; nullopt for valid UTF-8.
std::optional<size_t> InvalidUtf8(std::string_view text);

// The text without white space at both ends, as Python's str.strip() has it.
std::string_view Stripped(std::string_view text);

}  // namespace ct2triton
