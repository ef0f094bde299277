// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ct2triton {

// Statistics of a model's usual translations of known text: its file quality.json, which
// ct2-prepare writes into the folder of CTranslate2's config.json.
struct QualityStatistics {
  // Bounds of translations from one language into another.
  struct Pair {
    std::optional<std::pair<double, double>> length;  // of LengthRatio
    std::optional<double> least_score;                // per token, below 0
    std::optional<double> copied;                     // of CopiedShare
    std::optional<double> uncovered;                  // of Gaps
    std::optional<double> invented;                   // of Gaps
  };

  struct Language {
    std::map<std::string, double> words;  // share of each frequent word
    std::map<std::string, Pair> from;     // by code of the source; "": of a model that names none
  };

  int64_t least_number = 13;                  // smaller ones may be written as words
  std::map<std::string, Language> languages;  // by code; "" if the model names no languages
};

// Throws Error(kInvalidArgument) with the key, the value and what is allowed.
QualityStatistics ParseQualityStatistics(std::string_view json);

// Reads quality.json of a model directory; without it, the defaults. Throws Error.
QualityStatistics ReadQualityStatistics(const std::string& directory);

}  // namespace ct2triton
