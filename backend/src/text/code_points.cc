// SPDX-License-Identifier: Apache-2.0
#include "text/code_points.h"

namespace ct2triton {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool In(char32_t point, char32_t first, char32_t last) { return point >= first && point <= last; }

bool IsContinuation(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

// Bytes of a character, from its lead byte; 0 if the byte is not a lead byte.
size_t Length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

bool IsScalar(char32_t point, size_t length) {
  static constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  return point >= kLeast[length] && point <= 0x10FFFF && !In(point, 0xD800, 0xDFFF);
}

// In these ranges, upper and lower case alternate; `odd`: odd code points are lower case.
struct Alternating {
  char32_t first;
  char32_t last;
  bool odd;
};
constexpr Alternating kAlternating[] = {
    {0x100, 0x137, true},   {0x139, 0x148, false}, {0x14A, 0x177, true},  {0x179, 0x17E, false},
    {0x1CD, 0x1DC, false},  {0x1DE, 0x1EF, true},  {0x1F8, 0x21F, true},  {0x222, 0x233, true},
    {0x460, 0x481, true},   {0x48A, 0x4BF, true},  {0x4C1, 0x4CE, false}, {0x4D0, 0x52F, true},
    {0x1E00, 0x1E95, true}, {0x1EA0, 0x1EFF, true}};

// In these ranges, lower case is `distance` code points above upper case.
struct Shifted {
  char32_t first;
  char32_t last;
  char32_t distance;
};
constexpr Shifted kShifted[] = {{'A', 'Z', 32},      {0xC0, 0xD6, 32},   {0xD8, 0xDE, 32},
                                {0x391, 0x3AB, 32},  {0x410, 0x42F, 32}, {0x400, 0x40F, 80},
                                {0x531, 0x556, 0x30}};

const Alternating* FindAlternating(char32_t point) {
  for (const Alternating& range : kAlternating) {
    if (In(point, range.first, range.last)) return &range;
  }
  return nullptr;
}

// White space as Python's str.isspace() defines it.
bool IsPythonSpace(char32_t point) { return IsSpace(point) || In(point, 0x1C, 0x1F); }

Span Without(bool (*is_space)(char32_t), std::string_view text, Span span) {
  while (span.begin < span.end) {
    size_t behind = span.begin;
    if (!is_space(NextCodePoint(text, &behind))) break;
    span.begin = behind;
  }
  while (span.end > span.begin) {
    size_t before = span.end;
    if (!is_space(PreviousCodePoint(text, &before))) break;
    span.end = before;
  }
  return span;
}

}  // namespace

char32_t NextCodePoint(std::string_view text, size_t* at) {
  const size_t begin = (*at)++;
  const auto lead = static_cast<unsigned char>(text[begin]);
  const size_t length = Length(lead);
  if (length <= 1) return length == 1 ? lead : kReplacement;
  char32_t point = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text, begin + i)) return kReplacement;
    point = point << 6 | (static_cast<unsigned char>(text[begin + i]) & 0x3F);
  }
  if (!IsScalar(point, length)) return kReplacement;
  *at = begin + length;
  return point;
}

char32_t PreviousCodePoint(std::string_view text, size_t* at) {
  const size_t end = *at;
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && IsContinuation(text, begin)) --begin;
  size_t behind = begin;
  const char32_t point = NextCodePoint(text, &behind);
  *at = behind == end ? begin : end - 1;
  return behind == end ? point : kReplacement;
}

bool IsSpace(char32_t point) {
  return point == ' ' || IsLineBreak(point) || point == '\t' || point == 0xA0 || point == 0x1680 ||
         In(point, 0x2000, 0x200A) || point == 0x202F || point == 0x205F || point == 0x3000;
}

bool IsLineBreak(char32_t point) {
  return In(point, '\n', '\r') || point == 0x85 || point == 0x2028 || point == 0x2029;
}

bool IsDigit(char32_t point) { return In(point, '0', '9'); }

bool IsLower(char32_t point) {
  if (const Alternating* range = FindAlternating(point)) return (point % 2 == 1) == range->odd;
  return In(point, 'a', 'z') || In(point, 0xDF, 0xF6) || In(point, 0xF8, 0xFF) ||
         In(point, 0x250, 0x2AF) || In(point, 0x3AC, 0x3CE) || In(point, 0x430, 0x45F) ||
         In(point, 0x561, 0x587) || (In(point, 0x1F00, 0x1FFF) && point % 16 < 8);
}

bool IsUpper(char32_t point) { return ToLower(point) != point; }

char32_t ToLower(char32_t point) {
  for (const Shifted& range : kShifted) {
    if (In(point, range.first, range.last)) return point + range.distance;
  }
  const Alternating* range = FindAlternating(point);
  return range != nullptr && (point % 2 == 1) != range->odd ? point + 1 : point;
}

void AppendUtf8(char32_t point, std::string* text) {
  const auto add = [text](char32_t byte) { *text += static_cast<char>(byte); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    add(0xE0 | point >> 12);
    add(0x80 | (point >> 6 & 0x3F));
  } else {
    add(0xF0 | point >> 18);
    add(0x80 | (point >> 12 & 0x3F));
    add(0x80 | (point >> 6 & 0x3F));
  }
  add(0x80 | (point & 0x3F));
}

std::string Lowered(std::string_view text) {
  std::string lowered;
  for (size_t at = 0; at < text.size();) AppendUtf8(ToLower(NextCodePoint(text, &at)), &lowered);
  return lowered;
}

size_t Utf8Character(std::string_view text) {
  if (text.empty()) return 0;
  size_t at = 0;
  const bool invalid = NextCodePoint(text, &at) == kReplacement && at == 1;
  return invalid ? 0 : at;
}

std::optional<size_t> InvalidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = Utf8Character(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return std::nullopt;
}

Span Trimmed(std::string_view text, Span span) { return Without(IsSpace, text, span); }

std::string_view Stripped(std::string_view text) {
  const Span kept = Without(IsPythonSpace, text, {0, text.size()});
  return text.substr(kept.begin, kept.end - kept.begin);
}

}  // namespace ct2triton
