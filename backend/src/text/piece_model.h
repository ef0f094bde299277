// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/piece_list.h"

namespace sentencepiece::lite {
class SentencePieceLiteProcessor;
}

namespace ct2triton {

// A SentencePiece model that splits text, run by SentencePiece Lite. Immutable, so all threads
// share it.
class PieceModel {
 public:
  // kAsTheyAre: no space is added before a text, and no spaces are removed or merged.
  enum class Spaces { kOfTheModel, kAsTheyAre };

  // Reads a file (*.model, *.spm); throws Error, naming the file.
  explicit PieceModel(const std::filesystem::path& file, Spaces spaces = Spaces::kOfTheModel);
  ~PieceModel();

  // The pieces of a text, which must be UTF-8, by their numbers in this model.
  std::vector<int> Split(std::string_view text) const;
  // The two steps of Split: the text as the model normalizes it, and the pieces of such a text.
  std::string Normalized(std::string_view text) const;
  std::vector<int> SplitNormalized(std::string_view normalized) const;

  int size() const { return static_cast<int>(types_.size()); }
  // A view into the model.
  std::string_view text(int id) const;
  PieceType type(int id) const { return types_[static_cast<size_t>(id)]; }
  // Number of a piece; -1 if the model has no piece with this text.
  int Find(std::string_view piece) const;
  const std::string& unk_surface() const { return unk_surface_; }

 private:
  std::vector<PieceType> types_;
  std::string unk_surface_;
  std::unique_ptr<const sentencepiece::lite::SentencePieceLiteProcessor> processor_;
};

// The text of a piece, with plain spaces.
std::string WithSpaces(std::string_view piece);

// The bytes of a file; throws Error if it is missing or cannot be read.
std::string FileContent(const std::filesystem::path& file);

}  // namespace ct2triton
