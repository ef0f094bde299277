// SPDX-License-Identifier: Apache-2.0
//
// Code points of UTF-8, and the properties of them that segmentation needs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ct2triton {

// The code point at byte `*at`, which moves to its end. A byte that begins no valid sequence counts
// as one code point, U+FFFD, so any bytes can be read. `*at` must be below the size.
char32_t NextCodePoint(std::string_view text, size_t* at);
// The code point that ends at byte `*at`, which moves to its beginning. `*at` must be above 0.
char32_t PreviousCodePoint(std::string_view text, size_t* at);

bool IsSpace(char32_t point);      // white space, no-break spaces and line breaks too
bool IsLineBreak(char32_t point);  // \n, \v, \f, \r, U+0085, U+2028, U+2029
bool IsDigit(char32_t point);      // 0 to 9
bool IsLower(char32_t point);      // a letter in lower case: Latin, Greek, Cyrillic, Armenian
bool IsUpper(char32_t point);      // a letter that ToLower changes
char32_t ToLower(char32_t point);

// Bytes of the first character of the text; 0 if the text is empty or begins with invalid UTF-8 (a
// stray or missing byte, half a surrogate pair, an overlong form, or a value above U+10FFFF).
size_t Utf8Character(std::string_view text);
// Offset of the first byte that belongs to no character; nullopt for valid UTF-8.
std::optional<size_t> InvalidUtf8(std::string_view text);

// ToLower of each code point of a valid UTF-8 text.
std::string Lowered(std::string_view text);
void AppendUtf8(char32_t point, std::string* text);

// The text from `begin` to `end` without white space at its ends.
struct Span {
  size_t begin = 0;
  size_t end = 0;
};
Span Trimmed(std::string_view text, Span span);
// The text without white space at both ends, as Python's str.strip() has it.
std::string_view Stripped(std::string_view text);

}  // namespace ct2triton
