// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {

// The approximate text of tokens without a tokenizer: pieces of SentencePiece,
// or words with the joiners of subword-nmt (@@) or OpenNMT's tokenizer. Tokens such as </s> and
// __de__ are left out. `places`, if given, receives the bytes of each token.
std::string TokenText(const std::vector<std::string_view>& tokens,
                      std::vector<Span>* places = nullptr);

}  // namespace ct2triton
