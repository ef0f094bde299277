// SPDX-License-Identifier: Apache-2.0
#include "quality/judge.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "quality/loops.h"
#include "quality/values.h"

namespace ct2triton {
namespace {

constexpr double kAddedLength = 10;   // characters
constexpr double kCopiedShare = 0.7;  // of the source's words
constexpr size_t kFewestWords = 3;    // needed to decide whether a source was copied
constexpr size_t kFewestOfAll = 2;    // needed if all words came back, of kSentence words
constexpr size_t kSentence = 4;       // words, at least, that are no mere name
constexpr double kRareShare = 1e-4;   // of a word that is not listed
constexpr double kDecisive = 3;       // another language is e^3 times as likely
constexpr size_t kDecisiveWords = 2;  // needed to identify another language

const QualityStatistics::Language kNoLanguage;
const QualityStatistics::Pair kNoPair;

template <class Map>
const typename Map::mapped_type& Find(const Map& map, std::string_view code,
                                      const typename Map::mapped_type& otherwise) {
  const auto found = map.find(std::string(code));
  return found == map.end() ? otherwise : found->second;
}

std::set<std::string_view> TextsOf(const std::vector<Word>& words) {
  std::set<std::string_view> texts;
  for (const Word& word : words) texts.insert(word.text);
  return texts;
}

// The words that a translation must change. Numbers, names and words of the target language are
// left out. A capitalized word may be a name unless the whole text is in capitals.
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

bool AreEqual(const std::vector<Word>& some, const std::vector<Word>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                    [](const Word& one, const Word& other) { return one.text == other.text; });
}

double Ratio(size_t source, size_t target) {
  return std::log((static_cast<double>(target) + kAddedLength) /
                  (static_cast<double>(source) + kAddedLength));
}

// The doubt is 1 at both bounds, and infinite if a source with words has an empty translation.
std::optional<double> LengthDoubt(const ReadText& source, const ReadText& target,
                                  const QualityStatistics::Pair& pair) {
  const bool nothing = target.words.empty() && target.values.names.empty();
  if (nothing && !source.words.empty()) return std::numeric_limits<double>::infinity();
  if (!pair.length) return std::nullopt;
  const double middle = (pair.length->first + pair.length->second) / 2;
  return std::abs(Ratio(source.visible, target.visible) - middle) / (pair.length->second - middle);
}

// From the alignments of decode loops; CTranslate2 calls give none here.
void JudgeGaps(const ReadText& source, const ReadText& target, const Judged& judged,
               const QualityStatistics::Pair& pair, Verdict* verdict) {
  if (judged.alignment == nullptr || !judged.alignment->whole) return;
  const Gaps gaps = FindGaps(source.words, target.words, *judged.alignment);
  if (pair.uncovered) verdict->Set(Flag::kUncovered, gaps.uncovered / *pair.uncovered);
  if (pair.invented) verdict->Set(Flag::kInvented, gaps.invented / *pair.invented);
}

}  // namespace

double LengthRatio(std::string_view source, std::string_view target) {
  return Ratio(VisibleLength(source), VisibleLength(target));
}

double CopiedShare(const ReadText& source, const ReadText& target,
                   const std::map<std::string, double>& of_target) {
  const auto words = Translatable(source.words, of_target);
  const bool all = source.words.size() >= kSentence && AreEqual(source.words, target.words);
  if (words.size() < (all ? kFewestOfAll : kFewestWords)) return 0;
  const std::set<std::string_view> found = TextsOf(target.words);
  const auto copied = std::count_if(words.begin(), words.end(),
                                    [&](const Word* word) { return found.count(word->text) > 0; });
  return static_cast<double>(copied) / static_cast<double>(words.size());
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

// Returns nullopt unless at least two languages have word lists. Words that also occur in the
// source are taken for names.
std::optional<double> Judge::LanguageDoubt(const ReadText& source, const ReadText& target,
                                           size_t language) const {
  if (!has_words_[language] || with_words_ < 2) return std::nullopt;
  const std::set<std::string_view> given = TextsOf(source.words);
  std::vector<double> likelihoods(has_words_.size(), 0);
  // For each language, the words that are evidence for it and against `language`.
  std::vector<std::set<std::string_view>> words(has_words_.size());
  for (const Word& word : target.words) {
    const auto known = weights_.find(word.text);
    if (known == weights_.end() || given.count(word.text) > 0) continue;
    double own = 0;
    for (const auto& [number, weight] : known->second) own += number == language ? weight : 0;
    for (const auto& [number, weight] : known->second) {
      likelihoods[number] += weight;
      if (weight > own) words[number].insert(known->first);
    }
  }
  double most = 0;
  for (size_t other = 0; other < likelihoods.size(); ++other) {
    if (words[other].size() < kDecisiveWords) continue;
    most = std::max(most, likelihoods[other] - likelihoods[language]);
  }
  return most / kDecisive;
}

void Judge::JudgeLanguage(const ReadText& source, const ReadText& target, const Judged& judged,
                          Verdict* verdict) const {
  const auto known = statistics_.languages.find(std::string(judged.language));
  if (known == statistics_.languages.end()) return;
  const auto number = std::distance(statistics_.languages.begin(), known);
  const auto doubt = LanguageDoubt(source, target, static_cast<size_t>(number));
  if (doubt) verdict->Set(Flag::kLanguage, *doubt);
}

Verdict Judge::Of(const Judged& judged) const {
  Verdict verdict;
  const ReadText source(judged.source);
  const ReadText target(judged.target);
  const auto& language = Find(statistics_.languages, judged.language, kNoLanguage);
  const auto& pair = Find(language.from, judged.source_language, kNoPair);
  verdict.Set(Flag::kRepeats, LoopDoubt(source.text, target.text));
  if (source.whole && target.whole) {
    verdict.Set(Flag::kValues, ValuesDoubt(source.values, target.values, statistics_.least_number));
    verdict.Set(Flag::kCopied,
                CopiedShare(source, target, language.words) / pair.copied.value_or(kCopiedShare));
    JudgeLanguage(source, target, judged, &verdict);
    JudgeGaps(source, target, judged, pair, &verdict);
  }
  if (const auto doubt = LengthDoubt(source, target, pair)) verdict.Set(Flag::kLength, *doubt);
  if (pair.least_score && judged.score) {
    verdict.Set(Flag::kUnsure, *judged.score / *pair.least_score);
  }
  return verdict;
}

}  // namespace ct2triton
