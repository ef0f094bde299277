// SPDX-License-Identifier: Apache-2.0
#include "text/segmenter.h"

#include <algorithm>
#include <iterator>

#include "text/abbreviations.h"
#include "text/sentence_marks.h"

namespace ct2triton {
namespace {

// Longer quoted or bracketed parts are cut like any text.
constexpr size_t kMostEnclosedBytes = 400;
constexpr size_t kMostAbbreviatedLetters = 3;  // of each part of "e.g", "Ph.D"
constexpr size_t kMostOrdinalDigits = 3;       // 1990 is a year

constexpr char32_t kNone = 0;

char32_t PointAt(std::string_view line, size_t at) {
  return at < line.size() ? NextCodePoint(line, &at) : kNone;
}

bool IsNoBreakSpace(char32_t point) { return point == 0xA0 || point == 0x202F; }

// Terminators in a row, and the quotes and brackets that they close.
struct Run {
  Mark mark = Mark::kNone;
  size_t begin = 0;
  size_t end = 0;
  bool closed = false;  // by quotes or brackets
};

Mark MarkIn(const StopRules& rules, char32_t point) {
  if (point == ';' && rules.greek_question_mark) return Mark::kSpaced;
  return MarkOf(point);
}

// The last part that begins before or at `at`, or null. The parts are in order and do not overlap.
const Span* PartBefore(const std::vector<Span>& parts, size_t at) {
  const auto behind =
      std::upper_bound(parts.begin(), parts.end(), at,
                       [](size_t place, const Span& part) { return place < part.begin; });
  return behind == parts.begin() ? nullptr : &*std::prev(behind);
}

bool IsInside(const std::vector<Span>& parts, size_t at) {
  const Span* part = PartBefore(parts, at);
  return part != nullptr && part->begin < at && at < part->end;
}

bool BeginsPart(const std::vector<Span>& parts, size_t at) {
  const Span* part = PartBefore(parts, at);
  return part != nullptr && part->begin == at;
}

// The part that contains `at` if only white space and its closing mark follow in it, else null.
const Span* EndingPart(std::string_view line, size_t at, const std::vector<Span>& parts) {
  if (!IsInside(parts, at)) return nullptr;
  const Span* part = PartBefore(parts, at);
  while (at < part->end) {
    const char32_t point = NextCodePoint(line, &at);
    if (!IsSpace(point) && !IsClosing(point)) return nullptr;
  }
  return part;
}

// `at` is where the first terminator lies. Several full stops are an ellipsis.
Run ReadRun(std::string_view line, size_t at, const StopRules& rules,
            const std::vector<Span>& parts) {
  Run run;
  run.begin = run.end = at;
  while (at < line.size()) {
    const Mark mark = MarkIn(rules, NextCodePoint(line, &at));
    if (mark == Mark::kNone) break;
    const bool stops = mark == Mark::kFullStop && run.mark == Mark::kFullStop;
    run.mark = stops ? Mark::kEllipsis : std::max(run.mark, mark);
    run.end = at;
  }
  if (const Span* part = EndingPart(line, run.end, parts)) {
    run.end = part->end;
    run.closed = true;
  }
  for (at = run.end; at < line.size() && !BeginsPart(parts, run.end); run.end = at) {
    if (!IsClosing(NextCodePoint(line, &at))) break;
    run.closed = true;
  }
  return run;
}

// The word at the end of `text`, whose beginning is no dash, quote or bracket.
std::string_view LastWord(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t before = begin;
    const char32_t point = PreviousCodePoint(text, &before);
    const bool ends = IsSpace(point) || (IsOpening(point) && point != '-') || IsClosing(point) ||
                      (MarkOf(point) != Mark::kNone && point != '.');
    if (ends) break;
    begin = before;
  }
  return text.substr(begin);
}

std::string_view FirstWord(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    size_t behind = end;
    const char32_t point = NextCodePoint(text, &behind);
    if (IsSpace(point) || point == '\'' || point == 0x2019 || point == ',') break;
    end = behind;
  }
  return text.substr(0, end);
}

bool IsNumber(std::string_view word) {
  return std::all_of(word.begin(), word.end(),
                     [](char c) { return c == '.' || IsDigit(static_cast<unsigned char>(c)); });
}

bool IsShortNumber(std::string_view word) {
  return IsNumber(word) && word.size() - (word.rfind('.') + 1) <= kMostOrdinalDigits;
}

bool IsRomanNumeral(std::string_view word) {
  return word.size() > 1 && word.find_first_not_of("IVXLC") == std::string_view::npos;
}

bool IsInitial(std::string_view word) {
  size_t at = 0;
  const char32_t letter = NextCodePoint(word, &at);
  return at == word.size() && (IsLower(letter) || IsUpper(letter));
}

// "U.S", "z.B", "Ph.D", but not "example.com".
bool HasInnerStops(std::string_view word) {
  size_t letters = 0;
  bool inner = false;
  for (size_t at = 0; at < word.size();) {
    const char32_t point = NextCodePoint(word, &at);
    if (IsDigit(point)) return false;
    inner = inner || point == '.';
    letters = point == '.' ? 0 : letters + 1;
    if (letters > kMostAbbreviatedLetters) return false;
  }
  return inner;
}

// Whether a full stop after `word` ends a sentence. `first`: the word begins the sentence. `rest`:
// what follows, from its first letter or digit on.
bool StopEnds(const StopRules& rules, std::string_view word, bool first, std::string_view rest) {
  if (word.empty()) return true;
  if (IsShortNumber(word)) return !first && !rules.ordinals;
  if (IsInitial(word)) return false;
  if (IsRomanNumeral(word)) return !first && !rules.ordinals;
  const std::string lowered = Lowered(word);
  if (rules.abbreviations.count(lowered) > 0) return false;
  if (rules.before_number.count(lowered) > 0 && IsDigit(PointAt(rest, 0))) return false;
  return !HasInnerStops(word) || rules.starters.count(Lowered(FirstWord(rest))) > 0;
}

// Where the next word begins: after white space, and quotes, brackets and dashes that open.
size_t SkipToWord(std::string_view line, size_t at) {
  while (at < line.size()) {
    size_t behind = at;
    const char32_t point = NextCodePoint(line, &behind);
    if (!IsSpace(point) && !IsOpening(point)) break;
    at = behind;
  }
  return at;
}

// Whether what follows the run lets the sentence end there.
bool MayFollow(std::string_view line, const Run& run) {
  const char32_t next = PointAt(line, run.end);
  if (run.mark == Mark::kFirm) return !run.closed || IsSpace(next) || IsOpening(next);
  if (!IsSpace(next)) return false;
  return run.mark != Mark::kFullStop || run.closed || !IsNoBreakSpace(next);
}

bool Continues(char32_t point) {
  return IsLower(point) || MarkOf(point) != Mark::kNone ||
         (point < 0x80 &&
          std::string_view(",;:)]}/=%").find(static_cast<char>(point)) != std::string_view::npos);
}

// `first_word`: where the first word of the sentence begins.
bool EndsSentence(std::string_view line, const Run& run, size_t first_word,
                  const StopRules& rules) {
  if (!MayFollow(line, run)) return false;
  const size_t next = SkipToWord(line, run.end);
  if (next == line.size()) return run.mark != Mark::kFullStop;
  if (Continues(PointAt(line, next))) return false;
  const std::string_view rest = line.substr(next);
  if (run.mark == Mark::kEllipsis) return FirstWord(rest) != "I";
  if (run.mark != Mark::kFullStop) return true;
  const std::string_view word = LastWord(line.substr(0, run.begin));
  return StopEnds(rules, word, run.begin - word.size() <= first_word, rest);
}

void AddTrimmed(std::string_view text, Span span, std::vector<Span>* pieces) {
  span = Trimmed(text, span);
  if (span.begin < span.end) pieces->push_back(span);
}

void AddSentences(std::string_view text, Span line_span, const StopRules& rules,
                  std::vector<Span>* pieces) {
  const std::string_view line = text.substr(0, line_span.end).substr(line_span.begin);
  const std::vector<Span> parts = EnclosedParts(line, kMostEnclosedBytes);
  size_t begin = 0;
  size_t first_word = SkipToWord(line, 0);
  for (size_t at = 0; at < line.size();) {
    const size_t mark_at = at;
    if (MarkIn(rules, NextCodePoint(line, &at)) == Mark::kNone) continue;
    const Run run = ReadRun(line, mark_at, rules, parts);
    at = run.end;
    if (IsInside(parts, at) || !EndsSentence(line, run, first_word, rules)) continue;
    AddTrimmed(text, {line_span.begin + begin, line_span.begin + at}, pieces);
    begin = at;
    first_word = SkipToWord(line, begin);
  }
  AddTrimmed(text, {line_span.begin + begin, line_span.end}, pieces);
}

std::vector<Span> Lines(std::string_view text) {
  std::vector<Span> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    if (!IsLineBreak(NextCodePoint(text, &at))) continue;
    AddTrimmed(text, {begin, at}, &lines);
    begin = at;
  }
  AddTrimmed(text, {begin, text.size()}, &lines);
  return lines;
}

// Kinds of places where a part may end, from worst to best: anywhere, a space, after a clause mark.
enum class Place { kAnywhere, kSpace, kClause };

Place PlaceAt(std::string_view text, size_t at) {
  static constexpr std::u32string_view kClauseMarks =
      U";:,\u2014\u2013\u060C\u061B\u3001\uFF0C\uFF1B\uFF1A\u1363\u1364\u1365\u1366\u104A\u17D6"
      U"\u0F0D\u055D\u00B7";
  size_t begin = at;
  const char32_t before = PreviousCodePoint(text, &begin);
  const char32_t after = PointAt(text, at);
  const bool mark = kClauseMarks.find(before) != std::u32string_view::npos;
  const bool wide = before >= 0x2E80 || (before >= 0x1000 && before < 0x1800);
  if ((mark && (wide || IsSpace(after))) || MarkOf(before) == Mark::kFirm) return Place::kClause;
  return IsSpace(after) || before == 0x200B ? Place::kSpace : Place::kAnywhere;
}

// The best place in (begin, end]; the last one of equally good places.
size_t BestPlace(std::string_view text, size_t begin, size_t end) {
  size_t best = end;
  for (size_t at = end; at > begin;) {
    const Place place = PlaceAt(text, at);
    if (place == Place::kClause) return at;
    if (place == Place::kSpace && best == end && PlaceAt(text, end) != place) best = at;
    PreviousCodePoint(text, &at);
  }
  return best;
}

// The beginning of the code point that contains byte `at`.
size_t AlignedTo(std::string_view text, size_t begin, size_t at) {
  while (at > begin && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) {
    --at;
  }
  return at;
}

// The end of the longest part of `piece` that fits, or of its first code point.
size_t LongestFit(std::string_view text, Span piece, size_t tried, const Fitting& fitting) {
  size_t first = piece.begin;
  NextCodePoint(text, &first);
  for (;; tried *= 2) {
    const size_t bytes = std::min(piece.end - piece.begin, tried);
    const size_t end = std::max(first, AlignedTo(text, piece.begin, piece.begin + bytes));
    const size_t fit = fitting(text.substr(piece.begin, end - piece.begin));
    if (fit < end - piece.begin) {
      return std::max(first, AlignedTo(text, piece.begin, piece.begin + fit));
    }
    if (end == piece.end) return end;
  }
}

}  // namespace

std::vector<Span> Segment(std::string_view text, std::string_view language, Split split) {
  std::vector<Span> pieces;
  if (split == Split::kNone) {
    AddTrimmed(text, {0, text.size()}, &pieces);
    return pieces;
  }
  std::vector<Span> lines = Lines(text);
  if (split == Split::kLines) return lines;
  const StopRules& rules = StopRulesOf(language);
  for (const Span& line : lines) AddSentences(text, line, rules, &pieces);
  return pieces;
}

Span TakePart(std::string_view text, Span* rest, size_t tried, const Fitting& fitting) {
  size_t end = LongestFit(text, *rest, std::max<size_t>(tried, 1), fitting);
  if (end < rest->end) end = BestPlace(text, rest->begin, end);
  const Span part = Trimmed(text, {rest->begin, end});
  *rest = Trimmed(text, {end, rest->end});
  return part;
}

std::string GapInTarget(std::string_view gap, std::string_view target_language) {
  const std::string base = BaseLanguage(target_language);
  // Includes the nonstandard codes "jap" (OPUS-MT) and "zt" (Argos).
  static constexpr std::string_view kUnspaced[] = {"zh", "zho", "cmn", "yue", "wuu", "lzh",
                                                   "zt", "ja",  "jpn", "jp",  "jap"};
  const bool spaced =
      std::find(std::begin(kUnspaced), std::end(kUnspaced), base) == std::end(kUnspaced);
  if (gap.empty()) return spaced ? " " : "";
  return gap == " " && !spaced ? "" : std::string(gap);
}

}  // namespace ct2triton
