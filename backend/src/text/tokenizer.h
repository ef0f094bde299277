// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/pieces.h"
#include "text/token_rules.h"

namespace ct2triton {

// The IDs before and after those of the pieces in a row of INPUT_IDS.
struct Frame {
  std::vector<int> before;
  std::vector<int> after;

  size_t size() const { return before.size() + after.size(); }
  // The complete row for these pieces; empty if there are none.
  std::vector<int> Around(const std::vector<int>& pieces) const;
};

// The tokenizer of a prepared model: converts a text to rows of IDs and back. Its results equal
// those of the Python client (client/tokenization.py, client/requests.py), which reads the same
// files. Immutable: all threads share one per model.
//
// A language is named by a code or alias; an empty name means no language. Errors in arguments are
// kInvalidArgument, with a sentence for the client.
class Tokenizer {
 public:
  // Reads a folder with the files of a prepared model's tokenizer/: languages.json and the files in
  // its folder. Throws Error; kUnsupported for a tokenizer that C++ does not implement.
  static std::shared_ptr<const Tokenizer> Load(const std::filesystem::path& folder);

  // The model's code for a user's name of a language ("de", "de-DE", "deu_Latn"); empty if no name
  // is given and none is needed, or the model ignores the source language. Throws Error with the
  // nearest code.
  std::string Language(std::string_view name, Side side) const;
  const TokenRules& rules() const { return rules_; }

  // INPUT_IDS of a text: pieces with language and end tokens, and the task in words if the model
  // needs it. Empty if there is nothing to translate; such a row is not sent. Throws Error if the
  // text is not UTF-8 (with the offset of the byte), or the model does not have a language.
  std::vector<int> Source(std::string_view text, std::string_view source_language,
                          std::string_view target_language) const;
  // The two parts of Source: PiecesOf depends on the text, FrameOf on the languages.
  std::vector<int> PiecesOf(std::string_view text) const;
  // Pieces of a translation, or of a part of one, as a row of OUTPUT_IDS has them.
  std::vector<int> TargetPiecesOf(std::string_view text) const;
  Frame FrameOf(std::string_view source_language, std::string_view target_language) const;
  // Approximate number of bytes at the beginning of a text that make `most_pieces` pieces; the
  // length of the text if it has no more pieces.
  size_t Fitting(std::string_view text, size_t most_pieces) const;
  // TARGET_PREFIX; empty if the model has none.
  std::vector<int> Prefix(std::string_view target_language) const;
  // Number of IDs of a row of OUTPUT_IDS that are the prefix.
  size_t PrefixLength(std::string_view target_language) const;
  // Span of each ID of Source in the text, in bytes; empty for IDs that are not pieces of the text.
  // `ids` is the length of the row, which may have lost pieces at their end; the IDs after the
  // pieces remain and have no entry.
  std::vector<Span> SourcePlaces(std::string_view text, std::string_view source_language,
                                 std::string_view target_language, size_t ids) const;
  // Text of a row of OUTPUT_IDS; special tokens, including those of the prefix, have no text.
  // `places` receives the span of each ID's text, including its spaces.
  std::string Text(const int* ids, size_t count, std::vector<Span>* places = nullptr) const;
  // The stable beginning of the text of an unfinished row of OUTPUT_IDS, in whole characters.
  std::string SettledText(const int* ids, size_t count) const;

 private:
  Tokenizer(TokenRules rules, std::shared_ptr<const Pieces> pieces,
            std::shared_ptr<const Pieces> of_targets, bool numbers_differ);
  std::vector<int> Split(std::string_view text, const Pieces& pieces, bool source_ids) const;

  TokenRules rules_;
  std::shared_ptr<const Pieces> pieces_;
  std::shared_ptr<const Pieces>
      of_targets_;                // splits translations; equals `pieces_` if one model splits both
  const bool numbers_differ_;     // the IDs of a piece differ between the two sides
  std::vector<bool> is_special_;  // by source ID
};

}  // namespace ct2triton
