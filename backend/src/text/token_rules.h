// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"

namespace ct2triton {

enum class Side { kSource, kTarget };

// One language of a model, and the IDs that select it: see `Language` in prepared_model.py.
struct Language {
  std::string code;
  bool source = true;
  bool target = true;
  std::vector<int> source_ids;
  std::vector<int> target_source_ids;
  std::vector<int> target_prefix_ids;
};

// The content of languages.json, which ct2-prepare writes: how rows of IDs are composed, and the
// names of the languages. The Python client reads the same file (`TokenRules` in prepared_model.py,
// which explains each member). Immutable once read.
struct TokenRules {
  // Reads languages.json of a folder; throws Error, naming the file.
  static TokenRules Read(const std::filesystem::path& folder);
  // Reads the content of a languages.json; `name` is the file's name for messages.
  static TokenRules Parse(std::string_view content, const std::string& name);

  // The language that a name means: a code or alias, in upper or lower case, with - or _. A region
  // that the model does not know is ignored. For an empty name, the only language of that side, or
  // null if there are several and none is needed. Null for any source name if the model ignores the
  // source language. Throws Error.
  const Language* Find(std::string_view name, Side side) const;

  std::string family;
  int tokenizer_size = 0;
  int unk_id = 0;
  std::vector<int> end_ids;
  std::vector<int> special_ids;
  std::vector<Language> languages;
  bool source_required = false;
  bool target_required = false;
  bool source_last = false;
  bool prefix_starts = false;
  std::vector<AddedToken> added_tokens;
  std::string beside_added_tokens;

 private:
  const Language* Default(Side side) const;
  const Language* ByName(std::string_view folded) const;
  std::string Nearest(std::string_view folded, Side side) const;

  std::map<std::string, size_t, std::less<>> by_name_;              // folded; index of `languages`
  std::map<std::string, std::string, std::less<>> script_by_name_;  // folded
};

}  // namespace ct2triton
