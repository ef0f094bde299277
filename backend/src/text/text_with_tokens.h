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
// splits the text between two tokens. Immutable, so all threads share it.
class TextWithTokens {
 public:
  // `file` is the SentencePiece model. Throws Error; kUnsupported if the rules do not say how text
  // next to a token is split.
  TextWithTokens(const std::filesystem::path& file, const TokenRules& rules);

  // IDs of a text, which must be UTF-8. `id_by_piece` maps the numbers of the model's pieces to
  // IDs.
  std::vector<int> Encode(std::string_view text, const std::vector<int>& id_by_piece) const;

 private:
  // Which texts between added tokens get a space piece at their beginning without having a space.
  enum class Begins { kEachText, kFirstText };

  std::string Normalized(std::string_view text) const;
  std::string Chunk(std::string_view normalized, bool is_first) const;

  PieceModel model_;  // with Spaces::kAsTheyAre
  Begins begins_ = Begins::kEachText;
  bool drops_spaces_ = false;  // removes spaces next to a token
  std::string before_;         // written before a text
  AddedTokens as_written_;
  AddedTokens normalized_;
};

}  // namespace ct2triton
