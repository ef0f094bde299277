// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ct2triton {

// A number written in digits.
struct Number {
  std::vector<std::string> parts = {};  // other readings: "10 000", "3.5 million"
  bool scaled = false;                  // a word or sign such as "million" follows
  bool hour = false;
};

// The numbers of a text, keyed by their digits without separators and leading zeros.
struct Numbers {
  std::map<std::string, Number> found;
  std::set<std::string>
      readings;  // all numbers that the text may contain, also "XIX", "twenty-five"
  // Digits without trailing zeros: of all readings, and of the scaled numbers.
  std::set<std::string> significant, scaled;
};

Numbers FindNumbers(std::string_view text);

// Whether a number of one text occurs in another.
bool Stands(const std::string& digits, const Number& number, const Numbers& there);

}  // namespace ct2triton
