// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "quality/numbers.h"

namespace ct2triton {

// Values that a translation must keep.
struct Values {
  Numbers numbers;
  std::set<std::string> names;  // URLs, addresses, placeholders, tags
  std::string rest;             // the text with each byte of these names replaced by a bar
};

Values FindValues(std::string_view text);

// The doubt that values are missing or new. Numbers below `least_number` may be written as words,
// so they count only if each side has one that the other lacks. Hours may be on a 12-hour or a
// 24-hour clock.
double ValuesDoubt(const Values& source, const Values& target, int64_t least_number);

}  // namespace ct2triton
