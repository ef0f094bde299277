// SPDX-License-Identifier: Apache-2.0
#include "text/sentence_marks.h"

#include <algorithm>
#include <utility>

namespace ct2triton {
namespace {

// Arabic, Urdu, Ethiopic, Syriac, N'Ko, Canadian, Tibetan, Khmer, Mongolian and others beside the
// Latin ones.
constexpr std::u32string_view kSpaced =
    U"!?\u037E\u0589\u061F\u06D4\u0700\u0701\u0702\u07F9\u0F0D\u0F0E\u1367\u1368\u166E\u17D5\u1803"
    U"\u1809\u1944\u1945\u1B5E\u1B5F\u1C7E\u1C7F\u203C\u203D\u2047\u2048\u2049\u2E2E\uA4FF\uA60E"
    U"\uA60F\uA6F3\uA6F7\uA8CE\uA8CF\uA92F\uA9C8\uA9C9\uAA5D\uAA5E\uAA5F\uABEB\uFE52\uFE56\uFE57";
// Chinese and Japanese, Devanagari's danda, Ethiopic, Khmer, Burmese, Sinhala, Chakma.
constexpr std::u32string_view kFirm =
    U"\u3002\uFF61\uFE12\uFF01\uFF1F\u0964\u0965\u1362\u17D4\u104B\u0DF4\U00011141\U00011142";
constexpr std::u32string_view kClosing =
    U")]}\"'\u2019\u201D\u201C\u00BB\u203A\u00AB\u2039\u300D\u300F\u3011\u300B\u3009\u3015\u3017"
    U"\uFF09\uFF3D\uFF5D\uFF63\u2018";
constexpr std::u32string_view kOpening =
    U"([{\"'\u2018\u201C\u201E\u201A\u00AB\u2039\u00BB\u203A\u300C\u300E\u3010\u300A\u3008\u3014"
    U"\u3016\uFF08\uFF3B\uFF5B\uFF62\u00BF\u00A1-\u2013\u2014\u2015\u2022*";

struct Pair {
  char32_t open;
  char32_t close;
};
constexpr Pair kPairs[] = {
    {'(', ')'},       {'[', ']'},       {'{', '}'},       {0x201C, 0x201D}, {0x201E, 0x201C},
    {0x201E, 0x201D}, {0x201A, 0x2018}, {0x300C, 0x300D}, {0x300E, 0x300F}, {0x3010, 0x3011},
    {0x300A, 0x300B}, {0xFF08, 0xFF09}, {0x201D, 0x201D},  // Swedish, Finnish
};
// Signs that open in one language and close in another; the white space around them decides.
constexpr std::u32string_view kEither = U"\"\u00AB\u00BB";
constexpr size_t kDeepest = 8;

bool Has(std::u32string_view set, char32_t point) {
  return set.find(point) != std::u32string_view::npos;
}

bool Pairs(char32_t open, char32_t close) {
  if (Has(kEither, open)) {
    return open == '"' ? close == '"' : close == (open == 0xAB ? 0xBB : 0xAB) || close == open;
  }
  return std::any_of(std::begin(kPairs), std::end(kPairs),
                     [&](const Pair& pair) { return pair.open == open && pair.close == close; });
}

bool MayOpen(char32_t point, char32_t before, char32_t after) {
  const bool free_before = IsSpace(before) || IsOpening(before);
  if (point == 0xAB) return free_before && after != 0;  // French puts a space after it
  if (Has(kEither, point) || point == 0x201D) return free_before && !IsSpace(after);
  return std::any_of(std::begin(kPairs), std::end(kPairs),
                     [&](const Pair& pair) { return pair.open == point; });
}

struct Open {
  char32_t point;
  size_t begin;
};

// Adds the part that a sign closes and removes those inside it. Returns whether it closed one.
bool Close(char32_t point, size_t end, std::vector<Open>* open, std::vector<Span>* parts) {
  for (size_t depth = open->size(); depth-- > 0;) {
    if (!Pairs((*open)[depth].point, point)) continue;
    const size_t begin = (*open)[depth].begin;
    open->resize(depth);
    parts->push_back({begin, end});
    return true;
  }
  return false;
}

std::vector<Span> Outermost(std::vector<Span> parts) {
  std::sort(parts.begin(), parts.end(), [](const Span& a, const Span& b) {
    return std::pair(a.begin, b.end) < std::pair(b.begin, a.end);
  });
  std::vector<Span> outer;
  for (const Span& part : parts) {
    if (outer.empty() || part.begin >= outer.back().end) outer.push_back(part);
  }
  return outer;
}

}  // namespace

Mark MarkOf(char32_t point) {
  if (point == '.') return Mark::kFullStop;
  if (point == 0x2026) return Mark::kEllipsis;
  if (Has(kSpaced, point)) return Mark::kSpaced;
  return Has(kFirm, point) ? Mark::kFirm : Mark::kNone;
}

bool IsClosing(char32_t point) { return Has(kClosing, point); }

bool IsOpening(char32_t point) { return Has(kOpening, point); }

std::vector<Span> EnclosedParts(std::string_view line, size_t most_bytes) {
  std::vector<Span> parts;
  std::vector<Open> open;
  char32_t before = ' ';
  for (size_t at = 0; at < line.size();) {
    const size_t begin = at;
    const char32_t point = NextCodePoint(line, &at);
    size_t behind = at;
    const char32_t after = at < line.size() ? NextCodePoint(line, &behind) : ' ';
    if (!Close(point, at, &open, &parts) && MayOpen(point, before, after)) {
      if (open.size() == kDeepest) open.erase(open.begin());
      open.push_back({point, begin});
    }
    before = point;
  }
  parts.erase(std::remove_if(parts.begin(), parts.end(),
                             [&](const Span& part) { return part.end - part.begin > most_bytes; }),
              parts.end());
  return Outermost(std::move(parts));
}

}  // namespace ct2triton
