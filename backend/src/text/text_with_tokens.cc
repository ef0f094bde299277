// SPDX-License-Identifier: Apache-2.0
#include "text/text_with_tokens.h"

#include <utility>

#include "config/parse_value.h"
#include "error.h"
#include "text/code_points.h"

namespace ct2triton {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // how SentencePiece writes a space

bool BeginsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// The text without white space at its end, each run of spaces written as one piece's space.
std::string WithRunsJoined(std::string_view text) {
  const Span kept = Trimmed(text, {0, text.size()});
  text = text.substr(0, kept.begin < kept.end ? kept.end : 0);
  std::string joined;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && text[end] == ' ') ++end;
    joined += end - at > 1 ? kSpace : text.substr(at, 1);
    at = end - at > 1 ? end : at + 1;
  }
  return joined;
}

}  // namespace

TextWithTokens::TextWithTokens(const std::filesystem::path& file, const TokenRules& rules)
    : model_(file, PieceModel::Spaces::kAsTheyAre) {
  const std::string& beside = rules.beside_added_tokens;
  if (beside != "always" && beside != "first" && beside != "words") {
    throw Error(ErrorCode::kUnsupported,
                "tokens were added to this model's tokenizer, and it is not known how text beside "
                "them is split (" +
                    Quote(beside) +
                    "): prepare the model again with ct2-prepare, or send token ids");
  }
  if (beside == "first") begins_ = Begins::kFirstText;
  drops_spaces_ = beside == "words";
  // T5's task is written before the text, so an added token follows a space.
  if (rules.family == "t5" && !rules.languages.empty()) before_ = " ";
  std::vector<AddedToken> as_written;
  std::vector<AddedToken> normalized;
  for (AddedToken token : rules.added_tokens) {
    if (token.normalized) token.content = Normalized(token.content);
    (token.normalized ? normalized : as_written).push_back(std::move(token));
  }
  as_written_ = AddedTokens(std::move(as_written));
  normalized_ = AddedTokens(std::move(normalized));
}

std::string TextWithTokens::Normalized(std::string_view text) const {
  return WithRunsJoined(model_.Normalized(text));
}

std::string TextWithTokens::Chunk(std::string_view normalized, bool is_first) const {
  std::string chunk;
  if (drops_spaces_) {
    const Span kept = Trimmed(normalized, {0, normalized.size()});
    normalized = normalized.substr(kept.begin, kept.end - kept.begin);
  }
  if (normalized.empty()) return chunk;
  const bool begins = begins_ == Begins::kEachText || is_first;
  if (begins && normalized[0] != ' ' && !BeginsWith(normalized, kSpace)) chunk = kSpace;
  for (const char c : normalized) {
    if (c == ' ') {
      chunk += kSpace;
    } else {
      chunk += c;
    }
  }
  return chunk;
}

std::vector<int> TextWithTokens::Encode(std::string_view text,
                                        const std::vector<int>& id_by_piece) const {
  const std::string whole = before_ + std::string(text);
  std::vector<int> ids;
  bool is_first = true;
  const auto add = [&](const AddedTokens::Part& part) {
    if (part.id != AddedTokens::kText) {
      ids.push_back(part.id);
    } else {
      for (const int piece : model_.SplitNormalized(Chunk(part.text, is_first))) {
        ids.push_back(id_by_piece[static_cast<size_t>(piece)]);
      }
    }
    is_first = false;
  };
  for (const AddedTokens::Part& part : as_written_.Split(whole)) {
    if (part.id != AddedTokens::kText) {
      add(part);
      continue;
    }
    const std::string normalized = Normalized(part.text);
    for (const AddedTokens::Part& inner : normalized_.Split(normalized)) add(inner);
  }
  return ids;
}

}  // namespace ct2triton
