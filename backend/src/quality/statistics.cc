// SPDX-License-Identifier: Apache-2.0
#include "quality/statistics.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr double kMostNumber = 1e15;

[[noreturn]] void Refuse(const std::string& what) { ThrowInvalid("quality.json: " + what); }

[[noreturn]] void RefuseValue(const std::string& key, const Json& value,
                              const std::string& allowed) {
  const std::string shown = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  Refuse(key + ": the value " + Quote(shown) + " is not allowed; give " + allowed);
}

[[noreturn]] void RefuseKey(const std::string& key, const std::string& known) {
  Refuse("unknown key " + Quote(key) + "; known are " + known);
}

const Json& RequireObject(const std::string& key, const Json& value) {
  if (!value.is_object()) RefuseValue(key, value, "an object");
  return value;
}

// NaN is outside of every range.
double NumberIn(const std::string& key, const Json& value, double low, double high,
                const std::string& allowed) {
  const double number = value.is_number() ? value.get<double>() : high + 1;
  if (!(number >= low && number <= high)) RefuseValue(key, value, allowed);
  return number;
}

std::map<std::string, double> WordsOf(const std::string& key, const Json& value) {
  std::map<std::string, double> words;
  for (const auto& [word, share] : RequireObject(key, value).items()) {
    const std::string name = key + "." + Quote(word);
    const std::string allowed = "a share above 0, at most 1";
    words[word] = NumberIn(name, share, 0, 1, allowed);
    if (words[word] == 0) RefuseValue(name, share, allowed);
  }
  return words;
}

std::pair<double, double> LengthOf(const std::string& key, const Json& value) {
  constexpr double kMost = 20;
  const std::string allowed = "two numbers from -20 to 20, the lower bound first";
  if (!value.is_array() || value.size() != 2) RefuseValue(key, value, allowed);
  const double low = NumberIn(key, value[0], -kMost, kMost, allowed);
  const double high = NumberIn(key, value[1], -kMost, kMost, allowed);
  if (low >= high) RefuseValue(key, value, allowed);
  return {low, high};
}

double ScoreOf(const std::string& key, const Json& value) {
  constexpr double kLeast = -1000;
  constexpr double kMost = -0.001;
  return NumberIn(key, value, kLeast, kMost, "a number from -1000 to -0.001");
}

// Must be above 0. For a share, a value above 1 switches the flag off.
double BoundOf(const std::string& key, const Json& value) {
  constexpr double kLeast = 0.01;
  constexpr double kMost = 1000;
  return NumberIn(key, value, kLeast, kMost, "a number from 0.01 to 1000");
}

QualityStatistics::Pair PairOf(const std::string& key, const Json& value) {
  QualityStatistics::Pair pair;
  for (const auto& [name, member] : RequireObject(key, value).items()) {
    const std::string full = key + "." + name;
    if (name == "length") {
      pair.length = LengthOf(full, member);
    } else if (name == "least_score") {
      pair.least_score = ScoreOf(full, member);
    } else if (name == "copied") {
      pair.copied = BoundOf(full, member);
    } else if (name == "uncovered") {
      pair.uncovered = BoundOf(full, member);
    } else if (name == "invented") {
      pair.invented = BoundOf(full, member);
    } else {
      RefuseKey(full, "length, least_score, copied, uncovered, invented");
    }
  }
  return pair;
}

QualityStatistics::Language LanguageOf(const std::string& key, const Json& value) {
  QualityStatistics::Language language;
  for (const auto& [name, member] : RequireObject(key, value).items()) {
    const std::string full = key + "." + name;
    if (name == "words") {
      language.words = WordsOf(full, member);
    } else if (name == "from") {
      for (const auto& [code, pair] : RequireObject(full, member).items()) {
        language.from[code] = PairOf(full + "." + Quote(code), pair);
      }
    } else {
      RefuseKey(full, "words, from");
    }
  }
  return language;
}

int64_t LeastNumberOf(const Json& value) {
  const std::string allowed = "an integer from 0 to 10^15";
  if (!value.is_number_integer()) RefuseValue("least_number", value, allowed);
  return static_cast<int64_t>(NumberIn("least_number", value, 0, kMostNumber, allowed));
}

Json ParseObject(std::string_view text) {
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::exception& error) {
    Refuse("no JSON: " + Quote(error.what(), 200));
  }
  if (!root.is_object()) Refuse("no JSON object");
  return root;
}

}  // namespace

QualityStatistics ParseQualityStatistics(std::string_view json) {
  const Json root = ParseObject(json);
  const Json version = root.value("version", Json());
  if (version != kVersion) RefuseValue("version", version, std::to_string(kVersion));
  QualityStatistics statistics;
  for (const auto& [name, value] : root.items()) {
    if (name == "least_number") {
      statistics.least_number = LeastNumberOf(value);
    } else if (name == "languages") {
      for (const auto& [code, language] : RequireObject(name, value).items()) {
        statistics.languages[code] = LanguageOf("languages." + Quote(code), language);
      }
    } else if (name != "version") {
      RefuseKey(name, "version, least_number, languages");
    }
  }
  return statistics;
}

QualityStatistics ReadQualityStatistics(const std::string& directory) {
  const auto path = std::filesystem::path(directory) / "quality.json";
  std::ifstream file(path);
  if (!file && !std::filesystem::exists(path)) return {};
  if (!file) throw Error(ErrorCode::kUnavailable, path.string() + " cannot be read");
  try {
    return ParseQualityStatistics(std::string{std::istreambuf_iterator<char>(file), {}});
  } catch (const Error& error) {
    throw Error(error.code(), path.parent_path().string() + ": " + error.what());
  }
}

}  // namespace ct2triton
