// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "quality/values.h"
#include "quality/words.h"

namespace ct2triton {

// What the judge reads from a text, which must outlive it.
struct ReadText {
  // Bytes that are read. In a longer text, words and values are not judged.
  static constexpr size_t kMostBytes = size_t{1} << 16;

  explicit ReadText(std::string_view text);

  std::string_view text;
  bool whole = true;   // all of the text was read
  size_t visible = 0;  // characters without white space, of the whole text
  Values values;
  std::vector<Word> words;  // except those inside of `values.names`
};

}  // namespace ct2triton
