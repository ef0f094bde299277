// SPDX-License-Identifier: Apache-2.0
#include "quality/judge.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "quality/loops.h"
#include "quality/values.h"

namespace ct2triton {
namespace {

constexpr double kAddedLength = 10;   // characters
constexpr double kCopiedShare = 0.7;  // of the source's words
constexpr size_t kFewestWords = 3;    // that tell whether a source was copied
constexpr double kRareShare = 1e-4;   // of a word that is not listed
constexpr double kDecisive = 3;       // another language is e^3 times as likely

const QualityStatistics::Language kNoLanguage;

// The words that a translation changes: no numbers, no names, and none that its language has, too.
// A word of capitals may be a name where others have small letters.
std::vector<const Word*> Translatable(const std::vector<Word>& words,
                                      const std::map<std::string, double>& of_target) {
  const bool all_shouted = std::all_of(
      words.begin(), words.end(), [](const Word& word) { return word.number || word.shouted; });
  std::vector<const Word*> found;
  for (const Word& word : words) {
    if (word.number || of_target.count(word.text) > 0) continue;
    if (all_shouted || !word.capital) found.push_back(&word);
  }
  return found;
}

double CopiedDoubt(const std::vector<Word>& source, const std::vector<Word>& target,
                   const std::map<std::string, double>& of_target) {
  const auto words = Translatable(source, of_target);
  if (words.size() < kFewestWords) return 0;
  std::set<std::string_view> found;
  for (const Word& word : target) found.insert(word.text);
  const auto copied = std::count_if(words.begin(), words.end(),
                                    [&](const Word* word) { return found.count(word->text) > 0; });
  return static_cast<double>(copied) / static_cast<double>(words.size()) / kCopiedShare;
}

// 1 at both bounds.
double LengthDoubt(const Judged& judged, const std::pair<double, double>& bounds) {
  const double middle = (bounds.first + bounds.second) / 2;
  const double ratio = LengthRatio(judged.source, judged.target);
  return std::abs(ratio - middle) / (bounds.second - middle);
}

}  // namespace

double LengthRatio(std::string_view source, std::string_view target) {
  return std::log((static_cast<double>(VisibleLength(target)) + kAddedLength) /
                  (static_cast<double>(VisibleLength(source)) + kAddedLength));
}

Judge::Judge(QualityStatistics statistics) : statistics_(std::move(statistics)) {
  for (const auto& [code, language] : statistics_.languages) {
    const size_t number = has_words_.size();
    for (const auto& [word, share] : language.words) {
      if (share > kRareShare) weights_[word].emplace_back(number, std::log(share / kRareShare));
    }
    has_words_.push_back(!language.words.empty());
    with_words_ += has_words_.back() ? 1 : 0;
  }
}

// None where there are not two languages to tell apart.
std::optional<double> Judge::LanguageDoubt(const std::vector<Word>& words, size_t language) const {
  if (!has_words_[language] || with_words_ < 2) return std::nullopt;
  std::vector<double> likelihoods(has_words_.size(), 0);
  for (const Word& word : words) {
    const auto known = weights_.find(word.text);
    if (known == weights_.end()) continue;
    for (const auto& [number, weight] : known->second) likelihoods[number] += weight;
  }
  const double best = *std::max_element(likelihoods.begin(), likelihoods.end());
  return (best - likelihoods[language]) / kDecisive;
}

Verdict Judge::Of(const Judged& judged) const {
  Verdict verdict;
  const Values source_values = FindValues(judged.source);
  const Values target_values = FindValues(judged.target);
  const std::vector<Word> source = Words(source_values.rest);
  const std::vector<Word> target = Words(target_values.rest);
  verdict.Set(Flag::kRepeats, LoopDoubt(judged.source, judged.target));
  verdict.Set(Flag::kValues, ValuesDoubt(source_values, target_values, statistics_.least_number));
  const auto known = statistics_.languages.find(std::string(judged.language));
  const bool is_known = known != statistics_.languages.end();
  const QualityStatistics::Language& language = is_known ? known->second : kNoLanguage;
  verdict.Set(Flag::kCopied, CopiedDoubt(source, target, language.words));
  if (!is_known) return verdict;
  const auto number = std::distance(statistics_.languages.begin(), known);
  if (const auto doubt = LanguageDoubt(target, static_cast<size_t>(number))) {
    verdict.Set(Flag::kLanguage, *doubt);
  }
  if (language.length) verdict.Set(Flag::kLength, LengthDoubt(judged, *language.length));
  if (language.least_score && judged.score) {
    verdict.Set(Flag::kUnsure, *judged.score / *language.least_score);
  }
  return verdict;
}

}  // namespace ct2triton
