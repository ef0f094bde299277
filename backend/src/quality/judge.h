// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "quality/gaps.h"
#include "quality/read_text.h"
#include "quality/statistics.h"
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
