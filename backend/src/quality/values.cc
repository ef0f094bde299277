// SPDX-License-Identifier: Apache-2.0
#include "quality/values.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {
namespace {

constexpr size_t kMostDigits = 18;  // of a number that is compared as one
constexpr size_t kGroup = 3;        // digits behind a separator of thousands
constexpr int64_t kHalfDay_h = 12;

// The zeros of the scripts' decimal digits.
constexpr char32_t kZeros[] = {'0',    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66,
                               0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0E50,
                               0x0ED0, 0x0F20, 0x1040, 0x17E0, 0x1810, 0xFF10};

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

// Groups of digits, and what stands between two of them.
struct DigitGroup {
  std::string digits;
  size_t gap = 0;       // characters since the group before
  char32_t before = 0;  // the last one of them
};

std::vector<DigitGroup> DigitGroups(std::string_view text) {
  std::vector<DigitGroup> groups;
  size_t gap = 0;
  char32_t before = 0;
  for (size_t at = 0; at < text.size();) {
    const char32_t point = NextCodePoint(text, &at);
    const auto digit = DigitOf(point);
    if (!digit) {
      ++gap;
      before = point;
      continue;
    }
    if (groups.empty() || gap > 0) groups.push_back({"", gap, before});
    groups.back().digits += *digit;
    gap = 0;
  }
  return groups;
}

void AddNumbers(std::string_view text, std::set<std::string>* numbers) {
  std::vector<std::string> joined;
  for (const DigitGroup& group : DigitGroups(text)) {
    const bool goes_on = !joined.empty() && group.gap == 1 && SeparatesThousands(group.before) &&
                         group.digits.size() == kGroup && joined.back().size() <= kMostDigits;
    if (goes_on) {
      joined.back() += group.digits;
    } else {
      joined.push_back(group.digits);
    }
  }
  for (const std::string& number : joined) {
    numbers->insert(number.substr(std::min(number.find_first_not_of('0'), number.size() - 1)));
  }
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool IsBetween(std::string_view word, char first, char last) {
  return word.size() > 2 && word.front() == first && word.back() == last;
}

// Of a word without its punctuation.
bool IsName(std::string_view word) {
  if (Contains(word, "://") || word.substr(0, 4) == "www.") return true;
  const size_t at = word.find('@');
  if (at != std::string_view::npos && at > 0) return Contains(word.substr(at), ".");
  return IsBetween(word, '{', '}') || IsBetween(word, '<', '>') || IsBetween(word, '%', '%') ||
         IsBetween(word, '$', '$') || (word.size() > 4 && IsBetween(word, '_', '_')) ||
         (word.size() > 1 && word.front() == '%' && word.find_first_of("sdif@") == word.size() - 1);
}

// Without what may stand around it in a sentence.
std::string_view Bare(std::string_view word) {
  constexpr std::string_view kAround = "\"'()[],;:!?.";
  const size_t begin = word.find_first_not_of(kAround);
  if (begin == std::string_view::npos) return {};
  return word.substr(begin, word.find_last_not_of(kAround) + 1 - begin);
}

template <class Add>
void ForEachWord(std::string_view text, const Add& add) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t before = at;
    if (!IsSpace(NextCodePoint(text, &at))) continue;
    if (before > begin) add(text.substr(begin, before - begin));
    begin = at;
  }
  if (begin < text.size()) add(text.substr(begin));
}

std::set<std::string> Without(const std::set<std::string>& all, const std::set<std::string>& some) {
  std::set<std::string> rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(),
                      std::inserter(rest, rest.end()));
  return rest;
}

std::optional<int64_t> Hour(const std::string& number) {
  if (number.size() > 2) return std::nullopt;
  return std::stoll(number);
}

// Takes hours of 12 and of 24 that are the same out of both.
void PairHours(std::set<std::string>* missing, std::set<std::string>* added) {
  for (auto one = missing->begin(); one != missing->end();) {
    const auto hour = Hour(*one);
    size_t paired = 0;
    if (hour && *hour <= kHalfDay_h) paired = added->erase(std::to_string(*hour + kHalfDay_h));
    if (hour && paired == 0 && *hour >= kHalfDay_h) {
      paired = added->erase(std::to_string(*hour - kHalfDay_h));
    }
    one = paired > 0 ? missing->erase(one) : std::next(one);
  }
}

size_t CountFrom(const std::set<std::string>& numbers, int64_t least) {
  return static_cast<size_t>(std::count_if(numbers.begin(), numbers.end(), [&](const auto& number) {
    return number.size() > kMostDigits || std::stoll(number) >= least;
  }));
}

}  // namespace

Values FindValues(std::string_view text) {
  Values values;
  ForEachWord(text, [&](std::string_view word) {
    const std::string_view bare = Bare(word);
    if (IsName(bare)) {
      values.names.emplace(bare);
      values.rest += "| ";
    } else {
      values.rest += std::string(word) + " ";
    }
  });
  AddNumbers(values.rest, &values.numbers);
  return values;
}

double ValuesDoubt(const Values& source, const Values& target, int64_t least_number) {
  auto missing = Without(source.numbers, target.numbers);
  auto added = Without(target.numbers, source.numbers);
  PairHours(&missing, &added);
  const bool changed = !missing.empty() && !added.empty();
  const int64_t least = changed ? 0 : least_number;
  const size_t wrong = CountFrom(missing, least) + CountFrom(added, least) +
                       Without(source.names, target.names).size() +
                       Without(target.names, source.names).size();
  return wrong == 0 ? 0 : 1 + static_cast<double>(wrong);
}

}  // namespace ct2triton
