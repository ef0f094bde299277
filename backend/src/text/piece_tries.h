// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace ct2triton {

// Double-array tries as SentencePiece Lite reads them: 32-bit units, one after the other. Throw
// Error if a key cannot be stored.

// From each key to its value. Keys are not empty, hold no NUL and differ from each other.
std::vector<uint8_t> TrieOf(std::vector<std::pair<std::string_view, int>> keys);

// All pairs of neighbouring characters in the pieces. Each pair leads to the unit at which its
// second character begins pairs, so that a text is searched for pairs in one pass.
std::vector<uint8_t> TrieOfCharacterPairs(const std::vector<std::string_view>& pieces);

}  // namespace ct2triton
