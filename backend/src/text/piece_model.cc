// SPDX-License-Identifier: Apache-2.0
#include "text/piece_model.h"

#include <sentencepiece_lite.h>

#include <fstream>
#include <iterator>

#include "config/parse_value.h"
#include "error.h"
#include "text/flat_model.h"

namespace ct2triton {

namespace lite = sentencepiece::lite;

namespace {

void KeepSpaces(PieceList* list) {
  list->has_normalizer = true;
  list->normalizer.add_dummy_prefix = false;
  list->normalizer.remove_extra_spaces = false;
  list->normalizer.escape_spaces = false;
}

void CheckLength(lite::StatusCode status, std::string_view text) {
  if (status == lite::StatusCode::kOk) return;
  ThrowInvalid("a text of " + std::to_string(text.size()) + " bytes is too long to split");
}

}  // namespace

PieceModel::PieceModel(const std::filesystem::path& file, Spaces spaces) {
  const std::string content = FileContent(file);
  try {
    PieceList list = ParsePieceList(content);
    if (spaces == Spaces::kAsTheyAre) KeepSpaces(&list);
    processor_ = std::make_unique<const lite::SentencePieceLiteProcessor>(
        std::make_shared<std::string>(FlatModel(list)));
    if (processor_->status() != lite::StatusCode::kOk) {
      ThrowInvalid("SentencePiece Lite cannot read it");
    }
    for (const PieceList::Piece& piece : list.pieces) types_.push_back(piece.type);
    unk_surface_ = list.unk_surface;
  } catch (const Error& error) {
    throw Error(error.code(), "cannot read " + Quote(file.string(), 200) + ": " + error.what());
  }
}

PieceModel::~PieceModel() = default;

std::vector<int> PieceModel::Split(std::string_view text) const {
  std::vector<int> ids;
  CheckLength(processor_->Encode(text, &ids), text);
  return ids;
}

std::string PieceModel::Normalized(std::string_view text) const {
  std::string normalized;
  CheckLength(processor_->Normalize(text, &normalized), text);
  return normalized;
}

std::vector<int> PieceModel::SplitNormalized(std::string_view normalized) const {
  std::vector<int> ids;
  CheckLength(processor_->EncodeNormalized(normalized, &ids), normalized);
  return ids;
}

std::string_view PieceModel::text(int id) const { return processor_->IdToPiece(id); }

int PieceModel::Find(std::string_view piece) const {
  const int id = processor_->PieceToId(piece);
  return id >= 0 && text(id) == piece ? id : -1;
}

std::string FileContent(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw Error(ErrorCode::kNotFound, "there is no readable file " + Quote(file.string(), 200));
  }
  std::string content{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) {
    throw Error(ErrorCode::kUnavailable, "cannot read " + Quote(file.string(), 200));
  }
  return content;
}

std::string WithSpaces(std::string_view piece) {
  constexpr std::string_view kSpace = "\xE2\x96\x81";  // how SentencePiece writes a space
  std::string text;
  while (true) {
    const size_t at = piece.find(kSpace);
    text += piece.substr(0, at);
    if (at == std::string_view::npos) return text;
    text += ' ';
    piece.remove_prefix(at + kSpace.size());
  }
}

}  // namespace ct2triton
