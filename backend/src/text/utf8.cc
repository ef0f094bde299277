// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include <cstdint>

namespace ct2triton {
namespace {

uint8_t Byte(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

bool IsContinuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

uint32_t CodePoint(std::string_view character) {
  if (character.size() == 1) return Byte(character, 0);
  uint32_t code = Byte(character, 0) & (0x7F >> character.size());
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (Byte(character, i) & 0x3F);
  return code;
}

// White space as Python's str.isspace() defines it.
bool IsSpace(std::string_view character) {
  const uint32_t code = CodePoint(character);
  if (code < 0x80) return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20);
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

// The last character of a text, or its last byte if that is not UTF-8.
std::string_view LastCharacter(std::string_view text) {
  for (size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    const std::string_view end = text.substr(text.size() - size);
    if (Utf8Character(end) == size) return end;
  }
  return text.substr(text.size() - 1);
}

}  // namespace

size_t Utf8Character(std::string_view text) {
  if (text.empty()) return 0;
  const uint8_t first = Byte(text, 0);
  if (first < 0x80) return 1;
  const size_t size = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (size == 0 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(Byte(text, i))) return 0;
  }
  const uint32_t code = CodePoint(text.substr(0, size));
  const bool longer_than_needed = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return longer_than_needed || surrogate || code > 0x10FFFF ? 0 : size;
}

std::optional<size_t> InvalidUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t size = Utf8Character(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return std::nullopt;
}

std::string_view Stripped(std::string_view text) {
  while (const size_t size = Utf8Character(text)) {
    if (!IsSpace(text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (!text.empty()) {
    const std::string_view last = LastCharacter(text);
    if (!IsSpace(last)) break;
    text.remove_suffix(last.size());
  }
  return text;
}

}  // namespace ct2triton
