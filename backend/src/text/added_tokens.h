// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ct2triton {

// A token that was added to a tokenizer: see `AddedToken` in prepared_model.py.
struct AddedToken {
  std::string content;
  int id = 0;
  bool special = false;      // omitted from the text of translations
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool single_word = false;  // not within a word
  bool normalized = false;   // found in the normalized text
};

// Finds added tokens in texts as Hugging Face's `tokenizers` does. Immutable.
class AddedTokens {
 public:
  static constexpr int kText = -1;

  // A part of a text: an added token, or the text between two of them.
  struct Part {
    std::string_view text;
    int id = kText;
  };

  AddedTokens() = default;
  // Tokens with empty content are ignored.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  // The parts of a valid UTF-8 text, in order; no part is empty. If several tokens begin at a byte,
  // the longest is used.
  std::vector<Part> Split(std::string_view text) const;

 private:
  const AddedToken* TokenAt(std::string_view rest) const;

  std::array<std::vector<AddedToken>, 256> by_first_byte_;  // the longest first
};

}  // namespace ct2triton
