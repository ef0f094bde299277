// SPDX-License-Identifier: Apache-2.0
#include "config/shortlist_file.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {
namespace {

using nlohmann::json;

[[noreturn]] void Refuse(const std::string& what) {
  ThrowInvalid(std::string(kShortlistFile) + ": " + what);
}

[[noreturn]] void Refuse(const LanguageList& list, const std::string& what) {
  Refuse("the list of " + Quote(list.language) + " " + what);
}

int64_t ReadId(const json& value, const LanguageList& list, const char* member) {
  if (value.is_number_integer() && value >= 0) return value.get<int64_t>();
  Refuse(list, std::string("has ") + Quote(value.dump(), 40) + " in " + member +
                   "; an id is a whole number from 0");
}

std::optional<int64_t> ReadOptionalId(const json& entry, const LanguageList& list,
                                      const char* member) {
  const auto found = entry.find(member);
  if (found == entry.end() || found->is_null()) return std::nullopt;
  return ReadId(*found, list, member);
}

LanguageList ReadList(const json& entry) {
  LanguageList list;
  list.language = entry.at("language").get<std::string>();
  list.prefix_id = ReadOptionalId(entry, list, "prefix_id");
  list.source_id = ReadOptionalId(entry, list, "source_id");
  if (list.prefix_id.has_value() == list.source_id.has_value()) {
    Refuse(list, "needs either prefix_id or source_id: the id that names the language of a row");
  }
  const auto& tokens = entry.at("tokens");
  if (!tokens.is_array()) Refuse(list, "has tokens that are no array of ids");
  if (tokens.empty()) Refuse(list, "is empty; give the ids of its tokens, or remove it");
  for (const json& id : tokens) list.tokens.push_back(ReadId(id, list, "tokens"));
  return list;
}

void RequireDifferent(const std::vector<LanguageList>& lists) {
  std::set<std::string> languages;
  std::set<std::pair<bool, int64_t>> ids;
  for (const LanguageList& list : lists) {
    if (!languages.insert(list.language).second) Refuse(list, "appears twice");
    const bool in_prefix = list.prefix_id.has_value();
    const int64_t id = in_prefix ? *list.prefix_id : *list.source_id;
    if (ids.insert({in_prefix, id}).second) continue;
    Refuse(list, std::string("has the ") + (in_prefix ? "prefix_id " : "source_id ") +
                     std::to_string(id) + " of another list");
  }
}

}  // namespace

std::vector<LanguageList> ParseShortlists(std::string_view text) {
  std::vector<LanguageList> lists;
  try {
    const auto entries = json::parse(text).at("lists");
    for (const json& entry : entries) lists.push_back(ReadList(entry));
  } catch (const json::exception& error) {
    ThrowInvalid(std::string(kShortlistFile) + " cannot be read: " + Quote(error.what(), 200));
  }
  if (lists.empty()) Refuse("it has no list; write it again, or remove it to have none");
  RequireDifferent(lists);
  return lists;
}

}  // namespace ct2triton
