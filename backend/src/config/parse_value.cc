// SPDX-License-Identifier: Apache-2.0
#include "config/parse_value.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace ct2triton {
namespace {

using Json = nlohmann::json;

bool Inside(double number, const Range& range) {
  if (!std::isfinite(number)) return false;
  const bool above = range.above_min ? number > range.min : number >= range.min;
  const bool below = range.below_max ? number < range.max : number <= range.max;
  return above && below;
}

// Parses a text that is a number as a whole. from_chars accepts no locale, blanks or leading plus.
template <class Number>
std::optional<Number> NumberIn(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

std::optional<std::int64_t> Integer(const ParameterValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* text = std::get_if<std::string>(&value)) return NumberIn<std::int64_t>(*text);
  return std::nullopt;
}

std::optional<double> Real(const ParameterValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return NumberIn<double>(*text);
  return std::nullopt;
}

std::optional<bool> Boolean(const ParameterValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    if (*number == 0 || *number == 1) return *number == 1;
  } else if (const auto* given = std::get_if<std::string>(&value)) {
    std::string text = *given;
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
  }
  return std::nullopt;
}

bool ParseItem(const Json& item, const Range& range, std::int64_t* out) {
  // A number above the range of int64 is unsigned in the JSON library and fails the range check.
  if (!item.is_number_integer() || !Inside(item.get<double>(), range)) return false;
  *out = item.get<std::int64_t>();
  return true;
}

bool ParseItem(const Json& item, const Range&, std::string* out) {
  if (!item.is_string() || item.get_ref<const std::string&>().empty()) return false;
  *out = item.get<std::string>();
  return true;
}

bool ParseItem(const Json& item, const Range& range, Token* out) {
  if (item.is_string()) return ParseItem(item, range, &out->emplace<std::string>());
  return ParseItem(item, range, &out->emplace<std::int64_t>());
}

template <class Item>
bool ParseItem(const Json& list, const Range& range, std::vector<Item>* out) {
  if (!list.is_array()) return false;
  std::vector<Item> items(list.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!ParseItem(list[i], range, &items[i])) return false;
  }
  *out = std::move(items);
  return true;
}

template <class Item>
bool ParseList(const ParameterValue& value, const Range& range, std::vector<Item>* out) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || text->size() > kMaxListBytes) return false;
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  return ParseItem(json, range, out);  // text that is not JSON gives a value that is not an array
}

}  // namespace

bool ParseValue(const ParameterValue& value, const Range& range, std::int64_t* out) {
  const auto number = Integer(value);
  if (!number || !Inside(static_cast<double>(*number), range)) return false;
  *out = *number;
  return true;
}

bool ParseValue(const ParameterValue& value, const Range& range, std::optional<std::int64_t>* out) {
  std::int64_t number = 0;
  if (!ParseValue(value, range, &number)) return false;
  *out = number;
  return true;
}

bool ParseValue(const ParameterValue& value, const Range& range, double* out) {
  const auto number = Real(value);
  if (!number || !Inside(*number, range)) return false;
  *out = *number;
  return true;
}

bool ParseValue(const ParameterValue& value, const Range& range, float* out) {
  double number = 0;
  if (!ParseValue(value, range, &number)) return false;
  // Checked again with value and bounds narrowed, because a tiny number above 0 may become 0.
  const auto narrow = static_cast<float>(number);
  const Range narrowed{static_cast<float>(range.min), static_cast<float>(range.max),
                       range.above_min, range.below_max};
  if (!Inside(narrow, narrowed)) return false;
  *out = narrow;
  return true;
}

bool ParseValue(const ParameterValue& value, const Range&, bool* out) {
  const auto flag = Boolean(value);
  if (!flag) return false;
  *out = *flag;
  return true;
}

bool ParseValue(const ParameterValue& value, const Range& range, std::string* out) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return false;
  if (range.max > 0 && !Inside(static_cast<double>(text->size()), range)) return false;
  *out = *text;
  return true;
}

bool ParseValue(const ParameterValue& value, const Range& range, TokenSequence* out) {
  return ParseList(value, range, out);
}

bool ParseValue(const ParameterValue& value, const Range& range, std::vector<TokenSequence>* out) {
  std::vector<TokenSequence> sequences;
  if (!ParseList(value, range, &sequences)) return false;
  // CTranslate2 ignores an empty sequence, so it can only be a mistake.
  for (const auto& sequence : sequences) {
    if (sequence.empty()) return false;
  }
  *out = std::move(sequences);
  return true;
}

bool ParseValue(const ParameterValue& value, const Range& range, std::vector<std::int64_t>* out) {
  return ParseList(value, range, out);
}

bool ParseValue(const ParameterValue& value, const Range& range, std::vector<std::string>* out) {
  return ParseList(value, range, out);
}

std::string Quote(std::string_view text, std::size_t shown_bytes) {
  const Json shown = std::string(text.substr(0, shown_bytes));
  return shown.dump(-1, ' ', false, Json::error_handler_t::replace) +
         (text.size() > shown_bytes ? "..." : "");
}

std::string Show(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", number);
  return text;
}

std::string Show(float number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", static_cast<double>(number));
  return text;
}

std::string Show(const ParameterValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return Quote(*text);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return Show(std::get<double>(value));
}

}  // namespace ct2triton
