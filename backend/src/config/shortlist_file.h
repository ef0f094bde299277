// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ct2triton {

// The tokens that translations into one target language may contain. One of the two IDs names the
// language of a row, in its target prefix or in its source.
struct LanguageList {
  std::string language;  // for messages and readers of the file
  std::optional<int64_t> prefix_id;
  std::optional<int64_t> source_id;
  std::vector<int64_t> tokens;
};

inline constexpr const char* kShortlistFile = "shortlists.json";

// Reads shortlists.json of a model directory: {"lists": [{"language": "deu_Latn", "prefix_id":
// 256042, "tokens": [0, 2, 5]}]}. Throws Error(kInvalidArgument), with the language, for text of
// another form, a list that is empty, and a language or an id that occurs twice. Does not check the
// IDs against a vocabulary.
std::vector<LanguageList> ParseShortlists(std::string_view json);

}  // namespace ct2triton
