// SPDX-License-Identifier: Apache-2.0
#include "quality/read_text.h"

namespace ct2triton {

ReadText::ReadText(std::string_view given)
    : text(given.substr(0, kMostBytes)),
      whole(given.size() <= kMostBytes),
      visible(VisibleLength(given)),
      values(FindValues(text)),
      words(Words(values.rest)) {}

}  // namespace ct2triton
