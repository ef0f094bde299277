// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace ct2triton {

// Rules for full stops in one language. Words are in lower case, without their full stop.
struct StopRules {
  std::unordered_set<std::string> abbreviations;  // never end a sentence: "dr", "bzw"
  std::unordered_set<std::string> before_number;  // end none before a number: "no", "fig"
  std::unordered_set<std::string> starters;       // words that begin a sentence after "U.S."
  bool ordinals = false;             // a number with a full stop is an ordinal: "3. Mai"
  bool greek_question_mark = false;  // ; is a question mark
};

// The rules of a language by its code: "de", "deu", "de-AT" or "deu_Latn". A language without
// rules of its own gets a few abbreviations that many languages share.
const StopRules& StopRulesOf(std::string_view language);

// The part of a language code that names the language, in lower case: "deu" of "deu_Latn".
std::string BaseLanguage(std::string_view code);

}  // namespace ct2triton
