// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/code_points.h"
#include "text/piece_model.h"
#include "text/text_with_tokens.h"
#include "text/token_rules.h"

namespace ct2triton {

// Converts text to the IDs of its pieces and back, without special tokens. Results equal those of
// client/pieces.py, which reads the same files. Immutable, so all threads share it.
class Pieces {
 public:
  // Reads the tokenizer files in the folder of languages.json. `split` is the side whose texts are
  // split: OPUS-MT has a SentencePiece model for each. Throws Error.
  static std::unique_ptr<const Pieces> Read(const std::filesystem::path& folder,
                                            const TokenRules& rules, Side split = Side::kSource);

  // SidesDiffer: whether texts of the other side are split differently, by another model or into
  // other IDs. NumbersDiffer: whether the IDs differ. Both throw Error: an unknown family.
  static bool SidesDiffer(const std::filesystem::path& folder, const TokenRules& rules);
  static bool NumbersDiffer(const std::filesystem::path& folder, const TokenRules& rules);

  // Ids of a text, which must be UTF-8.
  std::vector<int> Encode(std::string_view text) const;
  // Text of ids, without spaces around it. IDs without text are left out, and all from `end` on.
  // `places`: receives the span of each ID's text, including its spaces.
  std::string Decode(const int* ids, size_t count, int end,
                     std::vector<Span>* places = nullptr) const;
  // For IDs that more will follow: the part of the text that later IDs cannot change, in whole
  // characters.
  std::string DecodeSettled(const int* ids, size_t count, int end) const;

  // Span of each piece of a text, see PiecePlaces.
  std::vector<Span> Places(std::string_view text) const;

  // ID of the piece that consists of one space.
  std::optional<int> space_id() const { return space_id_; }
  // IDs that can occur when a text is split, in ascending order.
  std::vector<int> TextIds() const;

 private:
  friend class PiecesReader;

  // The text of an id.
  struct Surface {
    enum class Kind : char { kNone, kText, kByte };
    Kind kind = Kind::kNone;
    std::string text;  // of a byte piece: that byte
  };

  Pieces() = default;
  std::string Join(const int* ids, size_t count, int end, bool more_follow,
                   std::vector<Span>* places) const;

  std::shared_ptr<const PieceModel> split_;
  std::unique_ptr<const TextWithTokens> with_tokens_;  // replaces `split_` if tokens were added
  std::vector<int> id_by_piece_;                       // by number in `split_`
  std::vector<Surface> surfaces_;                      // by id
  std::optional<int> space_id_;
};

}  // namespace ct2triton
