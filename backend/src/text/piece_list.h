// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ct2triton {

// Type of a piece of a SentencePiece model; numbered as in its files.
enum class PieceType : int8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// The parts of a SentencePiece model (*.model, *.spm) that splitting and joining text needs.
struct PieceList {
  enum class Algorithm : int8_t { kUnigram = 1, kBpe = 2, kWord = 3, kCharacter = 4 };

  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };

  struct Normalizer {
    std::string name;
    std::string charsmap;  // compiled; empty if characters are not changed
    bool add_dummy_prefix = true;
    bool remove_extra_spaces = true;
    bool escape_spaces = true;
  };

  std::vector<Piece> pieces;
  Normalizer normalizer;
  bool has_normalizer = false;
  bool has_denormalizer = false;  // that changes characters of the output text
  // Of the trainer's settings:
  bool has_trainer = false;
  Algorithm algorithm = Algorithm::kUnigram;
  bool space_as_suffix = false;
  int unk_id = 0;
  std::string unk_surface = " \xE2\x81\x87 ";
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";
  std::string pad_piece = "<pad>";
};

// Reads the content of a model file, a protobuf message. The text of an Error has no file name.
PieceList ParsePieceList(std::string_view content);

}  // namespace ct2triton
