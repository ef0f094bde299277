// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "quality/gaps.h"
#include "quality/statistics.h"
#include "quality/values.h"
#include "quality/verdict.h"
#include "quality/words.h"

namespace ct2triton {

// A sentence and its translation.
struct Judged {
  std::string_view source;
  std::string_view target;
  std::string_view language = {};         // code of the target; "": the model names none
  std::optional<double> score = {};       // mean log-probability of the tokens
  std::string_view source_language = {};  // its code
  const Alignment* alignment = nullptr;   // of the texts
};

// What the judge reads from a text, which must outlive it.
struct ReadText {
  // Bytes that are read. In a longer text, words and values are not judged.
  static constexpr size_t kMostBytes = size_t{1} << 16;

  explicit ReadText(std::string_view given)
      : text(given.substr(0, kMostBytes)),
        whole(given.size() <= kMostBytes),
        visible(VisibleLength(given)),
        values(FindValues(text)),
        words(Words(values.rest)) {}

  std::string_view text;
  bool whole = true;   // all of the text was read
  size_t visible = 0;  // characters without white space, of the whole text
  Values values;
  std::vector<Word> words;  // except those inside of `values.names`
};

// The natural logarithm of the length of a translation divided by that of its source, in visible
// characters. 10 is added to each length, so short texts give ratios near 1.
double LengthRatio(std::string_view source, std::string_view target);

// Share of a source's words that occur in a translation, among words that a translation must
// change. `of_target`: frequent words of its language.
double CopiedShare(const ReadText& source, const ReadText& target,
                   const std::map<std::string, double>& of_target);

// Finds doubtful translations from their text and the model's statistics. Immutable.
class Judge {
 public:
  explicit Judge(QualityStatistics statistics);

  Verdict Of(const Judged& judged) const;

 private:
  using Weights = std::vector<std::pair<size_t, double>>;  // by language, above 0

  std::optional<double> LanguageDoubt(const ReadText& source, const ReadText& target,
                                      size_t language) const;
  void JudgeLanguage(const ReadText& source, const ReadText& target, const Judged& judged,
                     Verdict* verdict) const;

  const QualityStatistics statistics_;
  // Naive Bayes weights: how much likelier a word is in each language than a word that is not
  // listed. All unlisted words have the same share.
  std::unordered_map<std::string, Weights> weights_;
  std::vector<bool> has_words_;  // of each language
  size_t with_words_ = 0;        // languages
};

}  // namespace ct2triton
