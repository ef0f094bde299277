// SPDX-License-Identifier: Apache-2.0
#include "quality/numbers.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "quality/words.h"
#include "text/code_points.h"

namespace ct2triton {
namespace {

constexpr size_t kMostDigits = 18;  // of a number that is compared as one
constexpr size_t kGroup = 3;        // digits after a separator of thousands
constexpr size_t kLakhGroup = 2;    // digits between two separators in India
constexpr size_t kMinute = 2;

// The zeros of the scripts' decimal digits.
constexpr char32_t kZeros[] = {'0',    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66,
                               0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0E50,
                               0x0ED0, 0x0F20, 0x1040, 0x17E0, 0x1810, 0xFF10};

// Signs and beginnings of words that multiply the number before them.
constexpr std::string_view kScales[] = {
    "万",      "萬",     "億",      "亿",       "千",      "百",      "兆",       "만",
    "억",      "천",     "million", "milliard", "millard", "billion", "trillion", "thousand",
    "tausend", "millon", "millón",  "milion",   "milhõ",   "milhã",   "miljo",    "miljard",
    "bilhõ",   "bilió",  "duizend", "lakh",     "crore",   "mio",     "mrd",      "mln",
    "mld",     "млн",    "млрд",    "тыс",      "миллион", "миллиард"};
constexpr std::string_view kScaleWords[] = {"mil", "mille", "mila", "k", "m", "bn"};
constexpr std::string_view kHourWords[] = {"am",      "pm",    "a.m", "p.m",   "o'clock",
                                           "o’clock", "uhr",   "uur", "heure", "heures",
                                           "hora",    "horas", "h",   "ore"};
constexpr std::string_view kHourSigns[] = {"点", "點", "时", "時", "시", "час"};

std::optional<char> DigitOf(char32_t point) {
  for (const char32_t zero : kZeros) {
    if (point >= zero && point < zero + 10) return static_cast<char>('0' + (point - zero));
  }
  return std::nullopt;
}

bool SeparatesThousands(char32_t point) {
  return point == '.' || point == ',' || point == '\'' || point == 0x2019 || point == 0x66C ||
         IsSpace(point);
}

struct DigitGroup {
  std::string digits;
  Span place;
  char32_t before = 0;  // the separator before this group, if it is one character
};

std::vector<DigitGroup> DigitGroups(std::string_view text) {
  std::vector<DigitGroup> groups;
  size_t gap = 0;
  char32_t before = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t point = NextCodePoint(text, &at);
    const auto digit = DigitOf(point);
    if (!digit) {
      ++gap;
      before = point;
      continue;
    }
    if (groups.empty() || gap > 0) groups.push_back({"", {begin, at}, gap == 1 ? before : 0});
    groups.back().digits += *digit;
    groups.back().place.end = at;
    gap = 0;
  }
  return groups;
}

std::string WithoutZeros(const std::string& digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
}

std::string Significant(const std::string& digits) {
  return digits.substr(0, digits.find_last_not_of('0') + 1);
}

template <class List>
bool StartsWithAny(std::string_view text, const List& list) {
  return std::any_of(std::begin(list), std::end(list),
                     [&](std::string_view start) { return text.substr(0, start.size()) == start; });
}

// The text after a number, in lower case and without leading white space.
std::string Following(std::string_view text, size_t at) {
  constexpr size_t kMost = 24;  // bytes
  const std::string_view cut = text.substr(at, kMost);
  return Lowered(cut.substr(Trimmed(cut, {0, cut.size()}).begin));
}

// Whether the text begins with one of these as a whole word.
template <class List>
bool BeginsWithWord(std::string_view text, const List& list) {
  return std::any_of(std::begin(list), std::end(list), [&](std::string_view word) {
    if (text.substr(0, word.size()) != word) return false;
    const char next = word.size() < text.size() ? text[word.size()] : ' ';
    return !(next >= 'a' && next <= 'z') && static_cast<unsigned char>(next) < 0x80;
  });
}

bool ScaleFollows(std::string_view text, size_t at) {
  const std::string next = Following(text, at);
  return StartsWithAny(next, kScales) || BeginsWithWord(next, kScaleWords);
}

bool HourFollows(std::string_view text, size_t at) {
  const std::string next = Following(text, at);
  return StartsWithAny(next, kHourSigns) || BeginsWithWord(next, kHourWords);
}

class NumberReader {
 public:
  NumberReader(std::string_view text, Numbers* numbers)
      : text_(text), groups_(DigitGroups(text)), numbers_(numbers) {}

  void Read() {
    for (size_t i = 0; i < groups_.size();) i = ReadOne(i);
  }

 private:
  bool Follows(size_t i, char32_t separator, size_t digits) const {
    return i < groups_.size() && groups_[i].before == separator &&
           groups_[i].digits.size() == digits;
  }

  // The number that begins with group `i` ends before this one: 10,000 or 1,00,000.
  size_t EndOfThousands(size_t i) const {
    const size_t first = groups_[i].digits.size();
    if (first > kGroup || i + 1 == groups_.size()) return i + 1;
    const char32_t separator = groups_[i + 1].before;
    if (!SeparatesThousands(separator)) return i + 1;
    size_t end = i + 1;
    while (Follows(end, separator, kGroup) && (end - i) * kGroup <= kMostDigits) ++end;
    if (end > i + 1 || separator != ',' || first > kLakhGroup) return end;
    size_t lakh = i + 1;
    while (Follows(lakh, separator, kLakhGroup) && (lakh - i) * kLakhGroup <= kMostDigits) ++lakh;
    return lakh > i + 1 && Follows(lakh, separator, kGroup) ? lakh + 1 : end;
  }

  std::string Joined(size_t begin, size_t end) const {
    std::string digits;
    for (size_t i = begin; i < end; ++i) digits += groups_[i].digits;
    return WithoutZeros(digits);
  }

  size_t ReadOne(size_t i) {
    size_t end = EndOfThousands(i);
    Number number;
    if (end > i + 1 && IsSpace(groups_[i + 1].before)) AddParts(i, end, &number);
    const size_t decimals =
        end < groups_.size() && (groups_[end].before == '.' || groups_[end].before == ',') ? end + 1
                                                                                           : end;
    if (decimals > end && ScaleFollows(text_, groups_[end].place.end)) {
      number.parts = {Joined(i, end), Joined(end, decimals)};
      end = decimals;
    }
    number.scaled = ScaleFollows(text_, groups_[end - 1].place.end);
    while (number.scaled && HasSignBefore(end)) ++end;  // 3万5千
    number.hour = IsHour(i);
    Add(Joined(i, end), number);
    return end;
  }

  void AddParts(size_t begin, size_t end, Number* number) const {
    for (size_t i = begin; i < end; ++i) number->parts.push_back(Joined(i, i + 1));
  }

  bool HasSignBefore(size_t i) const {
    constexpr char32_t kFirstSign = 0x4E00;
    return i < groups_.size() && groups_[i].before >= kFirstSign;
  }

  bool IsHour(size_t i) const {
    if (groups_[i].digits.size() > 2) return false;
    if (HourFollows(text_, groups_[i].place.end)) return true;
    if (!Follows(i + 1, groups_[std::min(i + 1, groups_.size() - 1)].before, kMinute)) return false;
    const char32_t before = groups_[i + 1].before;
    return before == ':' || before == 'h' || before == 0xFF1A ||
           ((before == '.' || before == ' ') && HourFollows(text_, groups_[i + 1].place.end));
  }

  void Add(const std::string& digits, const Number& number) {
    numbers_->readings.insert(digits);
    numbers_->readings.insert(number.parts.begin(), number.parts.end());
    numbers_->significant.insert(Significant(digits));
    if (number.scaled) numbers_->scaled.insert(Significant(digits));
    numbers_->found.emplace(digits, number);
  }

  const std::string_view text_;
  const std::vector<DigitGroup> groups_;
  Numbers* numbers_;
};

// Roman numerals of at least two letters, in capitals: "XIX", "XIXe".
std::optional<int64_t> RomanOf(std::string_view word) {
  static constexpr std::pair<std::string_view, int64_t> kSigns[] = {
      {"M", 1000}, {"CM", 900}, {"D", 500}, {"CD", 400}, {"C", 100}, {"XC", 90}, {"L", 50},
      {"XL", 40},  {"X", 10},   {"IX", 9},  {"V", 5},    {"IV", 4},  {"I", 1}};
  int64_t value = 0;
  size_t at = 0;
  for (const auto& [sign, worth] : kSigns) {
    while (word.substr(at, sign.size()) == sign) {
      value += worth;
      at += sign.size();
    }
  }
  constexpr size_t kLongestEnding = 4;  // bytes
  if (at < 2 || word.size() - at > kLongestEnding) return std::nullopt;
  return at == word.size() || !(word[at] >= 'A' && word[at] <= 'Z') ? std::optional(value)
                                                                    : std::nullopt;
}

// English number words up to twenty and the tens, which a translation may write in digits.
std::optional<int64_t> WordValue(std::string word) {
  static const std::map<std::string, int64_t> kWords = {
      {"one", 1},      {"two", 2},        {"three", 3},     {"four", 4},      {"five", 5},
      {"six", 6},      {"seven", 7},      {"eight", 8},     {"nine", 9},      {"ten", 10},
      {"eleven", 11},  {"twelve", 12},    {"thirteen", 13}, {"fourteen", 14}, {"fifteen", 15},
      {"sixteen", 16}, {"seventeen", 17}, {"eighteen", 18}, {"nineteen", 19}, {"twenty", 20},
      {"thirty", 30},  {"forty", 40},     {"fifty", 50},    {"sixty", 60},    {"seventy", 70},
      {"eighty", 80},  {"ninety", 90},    {"a", 1}};
  const auto ends = [&](std::string_view end) {
    return word.size() > end.size() && word.substr(word.size() - end.size()) == end;
  };
  if (ends("ieth")) word.replace(word.size() - 4, 4, "y");
  if (ends("th")) word.resize(word.size() - 2);
  const auto known = kWords.find(word);
  return known == kWords.end() ? std::nullopt : std::optional(known->second);
}

// Adds readings for numbers written as words. They are not required in the other text.
void AddWords(std::string_view text, Numbers* numbers) {
  constexpr int64_t kFirstTen = 20;
  constexpr int64_t kHundred = 100;
  const std::vector<Word> words = Words(text);
  const auto value_at = [&](size_t i) {
    return i < words.size() ? WordValue(words[i].text) : std::nullopt;
  };
  for (size_t i = 0; i < words.size(); ++i) {
    const Span place = words[i].place;
    if (words[i].capital) {
      const auto roman = RomanOf(text.substr(place.begin, place.end - place.begin));
      if (roman) numbers->readings.insert(std::to_string(*roman));
    }
    auto value = value_at(i);
    if (!value) continue;
    size_t next = i + 1;
    const auto unit = value_at(next);
    if (*value >= kFirstTen && unit && *unit < 10) {
      *value += *unit;
      ++next;
    }
    if (next < words.size() && words[next].text == "hundred") *value *= kHundred;
    const std::string digits = std::to_string(*value);
    if (*value != 1 || words[i].text != "a") numbers->readings.insert(digits);
    if (next < words.size() && StartsWithAny(words[next].text, kScales)) {
      numbers->scaled.insert(Significant(digits));
      numbers->significant.insert(Significant(digits));
    }
  }
}

}  // namespace

Numbers FindNumbers(std::string_view text) {
  Numbers numbers;
  NumberReader(text, &numbers).Read();
  AddWords(text, &numbers);
  return numbers;
}

bool Stands(const std::string& digits, const Number& number, const Numbers& there) {
  const auto is_there = [&](const std::string& one) { return there.readings.count(one) > 0; };
  if (is_there(digits)) return true;
  const auto& parts = number.parts;
  if (!parts.empty() && std::all_of(parts.begin(), parts.end(), is_there)) return true;
  const auto& alike = number.scaled ? there.significant : there.scaled;
  return alike.count(Significant(digits)) > 0;
}

}  // namespace ct2triton
