// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {

struct Word {
  std::string text;      // in lower case
  Span place = {};       // bytes of the text
  bool capital = false;  // it began with a capital letter
  bool shouted = false;  // and has no lower-case letters
  bool number = false;   // it begins with a digit
};

// The words of a text: runs of letters, marks and digits. Where a script puts no spaces between
// words, each of its characters is one.
std::vector<Word> Words(std::string_view text);

// Number of characters of a text that are not white space.
size_t VisibleLength(std::string_view text);

}  // namespace ct2triton
