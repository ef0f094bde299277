// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ct2triton {

// What a model's translations usually look like, from known text: its file quality.json, which
// ct2-prepare writes beside CTranslate2's config.json.
struct QualityStatistics {
  struct Language {
    std::map<std::string, double> words;              // share of each frequent word
    std::optional<std::pair<double, double>> length;  // bounds of LengthRatio
    std::optional<double> least_score;                // per token, below 0
  };

  int64_t least_number = 13;                  // smaller ones may be written as words
  std::map<std::string, Language> languages;  // by code; "": of a model that names none
};

// Throws Error(kInvalidArgument) with the key, the value and what is allowed.
QualityStatistics ParseQualityStatistics(std::string_view json);

// quality.json of a model directory; the defaults where there is none. Throws Error.
QualityStatistics ReadQualityStatistics(const std::string& directory);

}  // namespace ct2triton
