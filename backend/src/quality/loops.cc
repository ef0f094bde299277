// SPDX-License-Identifier: Apache-2.0
#include "quality/loops.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>

#include "text/code_points.h"

namespace ct2triton {
namespace {

// The words or characters of a text, as numbers.
using Sequence = std::vector<size_t>;

constexpr size_t kMostBytes = size_t{1} << 16;  // read of a text
constexpr size_t kLongestGroup = 64;            // of words
constexpr size_t kLongestCharGroup = 4;         // of characters
constexpr double kLaughter = 3;                 // repeated characters that explain repeated words
constexpr size_t kCharMatches = 7;              // matching characters that do not yet make a loop

Sequence WordSequence(std::string_view text) {
  Sequence sequence;
  for (const Word& word : Words(text)) sequence.push_back(std::hash<std::string>()(word.text));
  return sequence;
}

Sequence CharSequence(std::string_view text) {
  Sequence sequence;
  for (size_t at = 0; at < text.size();) sequence.push_back(ToLower(NextCodePoint(text, &at)));
  return sequence;
}

// The longest run of elements that equal the one `period` before them.
size_t Matches(const Sequence& all, size_t period) {
  size_t longest = 0;
  size_t run = 0;
  for (size_t i = period; i < all.size(); ++i) {
    run = all[i] == all[i - period] ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

size_t LongestPeriod(const Sequence& all, size_t most) { return std::min(most, all.size() / 2); }

// Number of repetitions of the longest loop's group after its first occurrence.
double Repetitions(const Sequence& all, size_t most_period) {
  double most = 0;
  for (size_t period = 1; period <= LongestPeriod(all, most_period); ++period) {
    most = std::max(most, static_cast<double>(Matches(all, period)) / static_cast<double>(period));
  }
  return most;
}

// `repetitions`: those of the source. `allowed`: matches that do not yet make a loop, by period.
double Doubt(const Sequence& target, size_t most_period, const std::function<double()>& repetitions,
             const std::function<size_t(size_t)>& allowed) {
  double most = 0;
  double explained = -1;
  for (size_t period = 1; period <= LongestPeriod(target, most_period); ++period) {
    const size_t matches = Matches(target, period);
    if (matches <= allowed(period)) continue;
    if (explained < 0) explained = repetitions();
    const double excess = static_cast<double>(matches) - explained * static_cast<double>(period);
    most = std::max(most, excess / static_cast<double>(allowed(period)));
  }
  return most;
}

size_t AllowedOfWords(size_t period) {
  const size_t of_short_groups = std::min<size_t>(2 * period, 8) - 1;
  return std::max({size_t{3}, of_short_groups, period - 1});
}

}  // namespace

double LoopDoubt(std::string_view source, std::string_view target) {
  source = source.substr(0, kMostBytes);
  target = target.substr(0, kMostBytes);
  const auto of_chars = [&] { return Repetitions(CharSequence(source), kLongestCharGroup); };
  const auto of_words = [&] {
    const double chars = of_chars();  // "hahahahaha" may become five words, and "Hello" none
    const double words = Repetitions(WordSequence(source), kLongestGroup);
    return chars < kLaughter ? words : std::max(words, chars);
  };
  return std::max(Doubt(WordSequence(target), kLongestGroup, of_words, AllowedOfWords),
                  Doubt(CharSequence(target), kLongestCharGroup, of_chars,
                        [](size_t) { return kCharMatches; }));
}

}  // namespace ct2triton
