// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/decoding_options.h"

namespace ct2triton {

// A value as config.pbtxt (strings only) or a request (all four) carries it.
using ParameterValue = std::variant<std::string, std::int64_t, bool, double>;

// The allowed numbers, including both bounds unless a flag excludes one. For lists of IDs it
// applies to each ID, for strings to the number of bytes, where 0 to 0 allows any.
struct Range {
  double min = 0;
  double max = 0;
  bool above_min = false;  // min itself is not allowed
  bool below_max = false;  // max itself is not allowed
};

// The longest list accepted, in bytes of JSON text. Bounds the work that a request can add to each
// decode step.
inline constexpr std::size_t kMaxListBytes = 65536;

// Strict parsers: return true and set `out` when the whole value is of the type and inside the
// range, else return false and leave `out` unchanged. Integers and booleans may be strings ("4",
// "true", "1"), numbers may also be integers, and lists must be strings of JSON. NaN and infinities
// are outside of every range.
bool ParseValue(const ParameterValue& value, const Range& range, std::int64_t* out);
bool ParseValue(const ParameterValue& value, const Range& range, std::optional<std::int64_t>* out);
bool ParseValue(const ParameterValue& value, const Range& range, float* out);
bool ParseValue(const ParameterValue& value, const Range& range, double* out);
bool ParseValue(const ParameterValue& value, const Range& range, bool* out);
bool ParseValue(const ParameterValue& value, const Range& range, std::string* out);
bool ParseValue(const ParameterValue& value, const Range& range, TokenSequence* out);
bool ParseValue(const ParameterValue& value, const Range& range, std::vector<TokenSequence>* out);
bool ParseValue(const ParameterValue& value, const Range& range, std::vector<std::int64_t>* out);
bool ParseValue(const ParameterValue& value, const Range& range, std::vector<std::string>* out);

// For messages: text in double quotes, escaped, valid UTF-8, cut if long. A very long message would
// not reach a gRPC client, because its status is sent in a header of at most 16 KiB.
std::string Quote(std::string_view text, std::size_t shown_bytes = 80);
// For messages: the value as given.
std::string Show(const ParameterValue& value);
// For messages: the usual form, "4", "0.5".
std::string Show(double number);
std::string Show(float number);

}  // namespace ct2triton
