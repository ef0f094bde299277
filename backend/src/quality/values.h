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
  std::string rest;             // the text with bars in the place of these names' bytes
};

Values FindValues(std::string_view text);

// The doubt that values are missing or new. Numbers below `least_number` may be written as words,
// and so count only where both sides have one that the other lacks. An hour may be one of 12 or of
// 24.
double ValuesDoubt(const Values& source, const Values& target, int64_t least_number);

}  // namespace ct2triton
