// SPDX-License-Identifier: Apache-2.0
#include "quality/token_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace ct2triton {
namespace {

constexpr std::string_view kSpace = "\u2581";   // of SentencePiece
constexpr std::string_view kJoiner = "\uFFED";  // of OpenNMT's tokenizer
constexpr std::string_view kGoesOn = "@@";      // of subword-nmt

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// <0x41>, a byte that has no piece.
std::optional<char> ByteOf(std::string_view token) {
  if (token.size() != 6 || !StartsWith(token, "<0x") || token.back() != '>') return std::nullopt;
  uint8_t byte = 0;
  const auto read = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (read.ptr != token.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

// deu_Latn, de_DE, en_XX.
bool IsLanguage(std::string_view token) {
  const size_t end = token.find('_');
  if (end != 2 && end != 3) return false;
  const auto all = [](std::string_view part, const auto& is) {
    return std::all_of(part.begin(), part.end(), is);
  };
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const std::string_view rest = token.substr(end + 1);
  const bool script = rest.size() == 4 && upper(rest.front()) && all(rest.substr(1), lower);
  return all(token.substr(0, end), lower) && (script || (rest.size() == 2 && all(rest, upper)));
}

bool IsSpecial(std::string_view token) {
  const auto stands_between = [&](std::string_view first, std::string_view last) {
    return token.size() > first.size() + last.size() && StartsWith(token, first) &&
           EndsWith(token, last);
  };
  return IsLanguage(token) || stands_between("<", ">") || stands_between("__", "__") ||
         stands_between(">>", "<<");
}

void AddPiece(std::string_view piece, std::string* text) {
  for (size_t at = piece.find(kSpace); at != std::string_view::npos; at = piece.find(kSpace)) {
    *text += std::string(piece.substr(0, at)) + " ";
    piece.remove_prefix(at + kSpace.size());
  }
  *text += piece;
}

// A space precedes a word unless the word or the one before it has a joiner.
void AddWord(std::string_view word, bool* joins, std::string* text) {
  bool joined = *joins || text->empty();
  if (StartsWith(word, kJoiner)) {
    joined = true;
    word.remove_prefix(kJoiner.size());
  }
  *joins = word.empty() || EndsWith(word, kJoiner) || EndsWith(word, kGoesOn);
  if (EndsWith(word, kJoiner)) word.remove_suffix(kJoiner.size());
  if (EndsWith(word, kGoesOn)) word.remove_suffix(kGoesOn.size());
  *text += (joined ? "" : " ") + std::string(word);
}

}  // namespace

std::string TokenText(const std::vector<std::string_view>& tokens, std::vector<Span>* places) {
  const bool pieces = std::any_of(tokens.begin(), tokens.end(), [](std::string_view token) {
    return token.find(kSpace) != std::string_view::npos;
  });
  std::string text;
  bool joins = false;
  for (const std::string_view token : tokens) {
    const size_t begin = text.size();
    if (const auto byte = ByteOf(token)) {
      text += *byte;
    } else if (pieces && !IsSpecial(token)) {
      AddPiece(token, &text);
    } else if (!IsSpecial(token)) {
      AddWord(token, &joins, &text);
    }
    if (places != nullptr) places->push_back({begin, text.size()});
  }
  return text;
}

}  // namespace ct2triton
