// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/piece_model.h"
#include "text/token_rules.h"

namespace ct2triton {

// Splits texts that may contain added tokens, as a tokenizer.json does: the SentencePiece model
// splits the text between two tokens. Const, shared by all threads.
class TextWithTokens {
 public:
  // `file` is the SentencePiece model. Throws Error; kUnsupported if the rules do not say how text
  // next to a token is split.
  TextWithTokens(const std::filesystem::path& file, const TokenRules& rules);

  // Ids of a text, which must be UTF-8; `id_by_piece` has those of the model's pieces.
  std::vector<int> Encode(std::string_view text, const std::vector<int>& id_by_piece) const;

 private:
  // Which texts begin with a space piece although they have no space.
  enum class Begins { kEachText, kFirstText };

  std::string Normalized(std::string_view text) const;
  std::string Chunk(std::string_view normalized, bool is_first) const;

  PieceModel model_;  // spaces stay as they are in it
  Begins begins_ = Begins::kEachText;
  bool drops_spaces_ = false;  // those beside a token
  std::string before_;         // goes before a text
  AddedTokens as_written_;
  AddedTokens normalized_;
};

}  // namespace ct2triton
