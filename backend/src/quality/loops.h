// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "quality/words.h"

namespace ct2triton {

// The doubt that a translation loops. Its longest loop counts, of words or of characters, beyond
// what the repetitions of its source explain. Raised from 5 equal words, 3 equal groups of 2 to 4
// words, or 2 of 8 and more; and from 9 equal characters. Of longer texts, 64 KiB are read.
double LoopDoubt(std::string_view source, std::string_view target);

}  // namespace ct2triton
