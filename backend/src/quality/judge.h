// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

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
};

// The natural logarithm of a translation's length divided by its source's, in visible characters.
// 10 are added on each side, so that short texts differ little.
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
  // A word counts for each language by how much likelier than a rare word it is there: naive Bayes,
  // with one share for all words that are not listed.
  std::unordered_map<std::string, Weights> weights_;
  std::vector<bool> has_words_;  // of each language
  size_t with_words_ = 0;        // languages
};

}  // namespace ct2triton
