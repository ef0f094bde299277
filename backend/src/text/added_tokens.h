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
  bool special = false;      // omitted from the text of answers
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool single_word = false;  // not within a word
  bool normalized = false;   // found in the normalized text
};

// Finds added tokens in texts, as the library tokenizers does. Const once made.
class AddedTokens {
 public:
  static constexpr int kText = -1;

  // A part of a text: an added token, or the text between two of them.
  struct Part {
    std::string_view text;
    int id = kText;
  };

  AddedTokens() = default;
  // Tokens without content are left out.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  // The parts of a valid UTF-8 text, in order and none empty: where several tokens begin at a byte,
  // the longest counts.
  std::vector<Part> Split(std::string_view text) const;

 private:
  const AddedToken* TokenAt(std::string_view rest) const;

  std::array<std::vector<AddedToken>, 256> by_first_byte_;  // the longest first
};

}  // namespace ct2triton
