// SPDX-License-Identifier: Apache-2.0
#include "quality/words.h"

#include "text/code_points.h"
#include "text/word_characters.h"

namespace ct2triton {
namespace {

// Chinese characters, Japanese kana, Thai, Lao, Burmese and Khmer.
bool IsWordAlone(char32_t point) {
  static constexpr struct {
    char32_t first, last;
  } kRanges[] = {{0x0E00, 0x0EFF}, {0x1000, 0x109F},   {0x1780, 0x17FF}, {0x2E80, 0x9FFF},
                 {0xF900, 0xFAFF}, {0x20000, 0x3FFFF}, {0xFF66, 0xFF9F}};
  for (const auto& range : kRanges) {
    if (point >= range.first && point <= range.last) return true;
  }
  return false;
}

}  // namespace

std::vector<Word> Words(std::string_view text) {
  std::vector<Word> words;
  bool goes_on = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t point = NextCodePoint(text, &at);
    if (!IsWordCharacter(point)) {
      goes_on = false;
      continue;
    }
    const bool alone = IsWordAlone(point);
    if (!goes_on || alone) {
      words.push_back({"", {begin, at}, IsUpper(point), IsUpper(point), IsDigit(point)});
    }
    words.back().place.end = at;
    words.back().shouted = words.back().shouted && !IsLower(point);
    AppendUtf8(ToLower(point), &words.back().text);
    goes_on = !alone;
  }
  return words;
}

size_t VisibleLength(std::string_view text) {
  size_t length = 0;
  for (size_t at = 0; at < text.size();) length += IsSpace(NextCodePoint(text, &at)) ? 0 : 1;
  return length;
}

}  // namespace ct2triton
