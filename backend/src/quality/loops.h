// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "quality/words.h"

namespace ct2triton {

// The doubt that a translation loops, from its longest loop of words or characters, less what the
// repetitions of its source explain. The flag is raised from 5 equal words, 3 equal groups of 2 to
// 4 words, 2 groups of 8 and more words, or 9 equal characters. Of longer texts, 64 KiB are read.
double LoopDoubt(std::string_view source, std::string_view target);

}  // namespace ct2triton
