// SPDX-License-Identifier: Apache-2.0
#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "text/code_points.h"
#include "text/word_characters.h"

namespace ct2triton {
namespace {

bool IsWithinWord(std::string_view text, size_t begin, size_t end) {
  size_t at = begin;
  if (begin > 0 && IsWordCharacter(PreviousCodePoint(text, &at))) return true;
  at = end;
  return end < text.size() && IsWordCharacter(NextCodePoint(text, &at));
}

size_t WithSpacesBefore(std::string_view text, size_t begin, size_t least) {
  while (begin > least) {
    size_t at = begin;
    if (!IsSpace(PreviousCodePoint(text, &at))) break;
    begin = at;
  }
  return std::max(begin, least);
}

size_t WithSpacesBehind(std::string_view text, size_t end) {
  while (end < text.size()) {
    size_t at = end;
    if (!IsSpace(NextCodePoint(text, &at))) break;
    end = at;
  }
  return end;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) {
  for (AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    by_first_byte_[static_cast<unsigned char>(token.content[0])].push_back(std::move(token));
  }
  for (auto& some : by_first_byte_) {
    std::stable_sort(some.begin(), some.end(), [](const AddedToken& a, const AddedToken& b) {
      return a.content.size() > b.content.size();
    });
  }
}

const AddedToken* AddedTokens::TokenAt(std::string_view rest) const {
  for (const AddedToken& token : by_first_byte_[static_cast<unsigned char>(rest[0])]) {
    if (rest.substr(0, token.content.size()) == token.content) return &token;
  }
  return nullptr;
}

std::vector<AddedTokens::Part> AddedTokens::Split(std::string_view text) const {
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const AddedToken* token = TokenAt(text.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + token->content.size();
    at = end;
    if (token->single_word && IsWithinWord(text, begin, end)) continue;
    if (token->lstrip) begin = WithSpacesBefore(text, begin, done);
    if (token->rstrip) end = WithSpacesBehind(text, std::max(end, done));  // once over each space
    // The token before may have taken this one, of spaces, or its first bytes.
    if (end <= done) continue;
    begin = std::max(begin, done);
    if (done < begin) parts.push_back({text.substr(done, begin - done), kText});
    parts.push_back({text.substr(begin, end - begin), token->id});
    done = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done), kText});
  return parts;
}

}  // namespace ct2triton
