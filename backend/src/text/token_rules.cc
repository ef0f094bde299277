// SPDX-License-Identifier: Apache-2.0
#include "text/token_rules.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "config/nearest_name.h"
#include "config/parse_value.h"
#include "error.h"
#include "text/code_points.h"
#include "text/piece_model.h"

namespace ct2triton {
namespace {

constexpr int kFormat = 1;
constexpr size_t kFewLanguages = 24;  // up to this many, a message names all
constexpr size_t kShownLanguages = 5;

bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Folded(std::string_view name) {
  std::string folded(Stripped(name));
  for (char& c : folded) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return folded;
}

// A folded name without the region at its end: two letters or three digits after a hyphen.
std::string_view WithoutRegion(std::string_view folded) {
  const size_t hyphen = folded.rfind('-');
  if (hyphen == std::string_view::npos || hyphen == 0) return folded;
  const std::string_view end = folded.substr(hyphen + 1);
  const bool is_region = (end.size() == 2 && std::all_of(end.begin(), end.end(), IsLetter)) ||
                         (end.size() == 3 && std::all_of(end.begin(), end.end(), IsDigit));
  return is_region ? folded.substr(0, hyphen) : folded;
}

bool Has(const Language& language, Side side) {
  return side == Side::kSource ? language.source : language.target;
}

const char* Name(Side side) { return side == Side::kSource ? "source" : "target"; }

// Codes for a message: all languages if they are few, else some.
std::string KnownLanguages(const std::vector<Language>& languages, Side side) {
  std::vector<std::string_view> codes;
  for (const Language& language : languages) {
    if (Has(language, side)) codes.push_back(language.code);
  }
  const bool few = codes.size() <= kFewLanguages;
  std::string known = few ? "it has " : "it has " + std::to_string(codes.size()) + ", such as ";
  for (size_t i = 0; i < (few ? codes.size() : kShownLanguages); ++i) {
    known += (i == 0 ? "" : ", ") + std::string(codes[i]);
  }
  return codes.empty() ? "it has none" : known;
}

// Name of the input tensor that names the language of this side.
const char* InputOf(Side side) {
  return side == Side::kSource ? "source_language" : "target_languages";
}

Language ParseLanguage(const nlohmann::json& entry) {
  Language language;
  entry.at("code").get_to(language.code);
  entry.at("source").get_to(language.source);
  entry.at("target").get_to(language.target);
  entry.at("source_ids").get_to(language.source_ids);
  entry.at("target_source_ids").get_to(language.target_source_ids);
  entry.at("target_prefix_ids").get_to(language.target_prefix_ids);
  return language;
}

AddedToken ParseAddedToken(const nlohmann::json& entry) {
  AddedToken token;
  entry.at("content").get_to(token.content);
  entry.at("id").get_to(token.id);
  token.special = entry.value("special", false);
  token.lstrip = entry.value("lstrip", false);
  token.rstrip = entry.value("rstrip", false);
  token.single_word = entry.value("single_word", false);
  token.normalized = entry.value("normalized", false);
  return token;
}

void ParseRules(const nlohmann::json& root, TokenRules* rules) {
  root.at("family").get_to(rules->family);
  root.at("tokenizer_size").get_to(rules->tokenizer_size);
  root.at("unk_id").get_to(rules->unk_id);
  root.at("end_ids").get_to(rules->end_ids);
  root.at("special_ids").get_to(rules->special_ids);
  root.at("source_required").get_to(rules->source_required);
  root.at("target_required").get_to(rules->target_required);
  // Missing in folders that were prepared by an earlier version.
  rules->source_last = root.value("source_last", false);
  rules->prefix_starts = root.value("prefix_starts", false);
  rules->beside_added_tokens = root.value("beside_added_tokens", "");
  for (const auto& entry : root.value("added_tokens", nlohmann::json::array())) {
    rules->added_tokens.push_back(ParseAddedToken(entry));
  }
  for (const nlohmann::json& entry : root.at("languages")) {
    rules->languages.push_back(ParseLanguage(entry));
  }
}

}  // namespace

TokenRules TokenRules::Read(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "languages.json";
  return Parse(FileContent(file), file.string());
}

TokenRules TokenRules::Parse(std::string_view content, const std::string& name) {
  const std::string damaged = Quote(name, 200) + " is damaged or of another version (";
  const std::string mend = "); prepare the model again with ct2-prepare";
  TokenRules rules;
  try {
    const auto root = nlohmann::json::parse(content);
    if (root.at("format").get<int>() != kFormat) ThrowInvalid(damaged + "its format" + mend);
    ParseRules(root, &rules);
    size_t index = 0;
    for (const nlohmann::json& entry : root.at("languages")) {
      for (const nlohmann::json& alias : entry.at("aliases")) {
        rules.by_name_[Folded(alias.get<std::string>())] = index;
      }
      ++index;
    }
    const auto scripts = root.value("other_scripts", nlohmann::json::object());
    for (const auto& [alias, script] : scripts.items()) {
      rules.script_by_name_[Folded(alias)] = script.get<std::string>();
    }
  } catch (const nlohmann::json::exception& error) {
    ThrowInvalid(damaged + Quote(error.what(), 200) + mend);
  }
  for (size_t i = 0; i < rules.languages.size(); ++i) {
    rules.by_name_[Folded(rules.languages[i].code)] = i;
  }
  return rules;
}

const Language* TokenRules::Find(std::string_view name, Side side) const {
  const bool tells_apart = std::any_of(languages.begin(), languages.end(),
                                       [](const Language& entry) { return entry.source; });
  if (side == Side::kSource && !tells_apart) return nullptr;
  if (name.empty()) return Default(side);
  const std::string folded = Folded(name);
  const Language* found = ByName(folded);
  const auto script = script_by_name_.find(folded);
  if (found == nullptr && script != script_by_name_.end()) {
    ThrowInvalid(Quote(name) + " is written in the script " + script->second +
                 ", which the model does not have; " + Nearest(folded, side));
  }
  if (found == nullptr) found = ByName(WithoutRegion(folded));
  if (found == nullptr || !Has(*found, side)) {
    ThrowInvalid(std::string("the model has no ") + Name(side) + " language " + Quote(name) + "; " +
                 Nearest(folded, side));
  }
  return found;
}

const Language* TokenRules::Default(Side side) const {
  const auto has_side = [side](const Language& entry) { return Has(entry, side); };
  const auto first = std::find_if(languages.begin(), languages.end(), has_side);
  if (std::count_if(languages.begin(), languages.end(), has_side) == 1) return &*first;
  if (!(side == Side::kSource ? source_required : target_required)) return nullptr;
  ThrowInvalid(std::string("this model needs a ") + Name(side) + " language in " + InputOf(side) +
               "; " + KnownLanguages(languages, side));
}

const Language* TokenRules::ByName(std::string_view folded) const {
  const auto found = by_name_.find(folded);
  return found == by_name_.end() ? nullptr : &languages[found->second];
}

std::string TokenRules::Nearest(std::string_view folded, Side side) const {
  const Language* nearest = ByName(folded.substr(0, folded.find('-')));
  if (nearest == nullptr || !Has(*nearest, side)) {
    std::vector<std::string_view> known;
    for (const auto& [name, index] : by_name_) {
      if (Has(languages[index], side)) known.push_back(name);
    }
    const auto name = NearestName(folded, known);
    nearest = name ? ByName(*name) : nullptr;
  }
  return nearest == nullptr ? KnownLanguages(languages, side) : "nearest: " + nearest->code;
}

}  // namespace ct2triton
