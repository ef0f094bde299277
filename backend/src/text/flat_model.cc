// SPDX-License-Identifier: Apache-2.0
#include "text/flat_model.h"

#include <sentencepiece_lite.h>
#include <sentencepiece_lite_generated.h>

#include <cctype>
#include <cmath>
#include <memory>
#include <utility>

#include "config/parse_value.h"
#include "error.h"
#include "text/piece_tries.h"

namespace ct2triton {
namespace {

namespace lite = sentencepiece::lite;

// Limits of SentencePiece Lite's format.
constexpr size_t kMaxPieces = 16000000;
constexpr size_t kMaxPieceBytes = 4096;
constexpr size_t kMaxShortcutBytes = 128;
constexpr float kMaxMergeRank = 2147483520.0F;

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kUnsupported, "it cannot be used: " + what);
}

bool IsByteName(const std::string& text) {
  return text.size() == 6 && text.compare(0, 3, "<0x") == 0 && text[5] == '>' &&
         std::isxdigit(static_cast<unsigned char>(text[3])) != 0 &&
         std::isxdigit(static_cast<unsigned char>(text[4])) != 0;
}

void CheckModel(const PieceList& list) {
  if (list.algorithm != PieceList::Algorithm::kUnigram &&
      list.algorithm != PieceList::Algorithm::kBpe) {
    Refuse("it splits neither by unigrams nor by byte pair encoding");
  }
  if (list.has_denormalizer) Refuse("it changes characters of an answer (a denormalizer)");
  if (list.pieces.size() > kMaxPieces) {
    Refuse(std::to_string(list.pieces.size()) + " pieces; at most " + std::to_string(kMaxPieces));
  }
}

void CheckPiece(const PieceList& list, size_t id) {
  const PieceList::Piece& piece = list.pieces[id];
  const std::string number = "piece " + std::to_string(id);
  if (piece.text.empty()) Refuse(number + " is empty");
  if (piece.text.find('\0') != std::string::npos) Refuse(number + " holds a NUL");
  if (piece.text.size() > kMaxPieceBytes) {
    Refuse(number + " is longer than " + std::to_string(kMaxPieceBytes) + " bytes");
  }
  if (piece.type == PieceType::kByte && !IsByteName(piece.text)) {
    Refuse(number + " represents a byte, but is not written as <0x41>: " + Quote(piece.text));
  }
  const bool is_rank = list.algorithm == PieceList::Algorithm::kBpe;
  const bool is_too_large = is_rank && std::abs(piece.score) > kMaxMergeRank;
  if (std::isnan(piece.score) || is_too_large) Refuse(number + " has an impossible score");
}

void AddPieces(const PieceList& list, lite::ModelProtoT* model) {
  const bool is_bpe = list.algorithm == PieceList::Algorithm::kBpe;
  const auto or_usual = [](const std::string& name, const char* usual) {
    return name.empty() ? usual : name;
  };
  const std::pair<std::string, int*> named[] = {
      {or_usual(list.bos_piece, "<s>"), &model->bos_id},
      {or_usual(list.eos_piece, "</s>"), &model->eos_id},
      {or_usual(list.pad_piece, "<pad>"), &model->pad_id}};
  for (size_t i = 0; i < list.pieces.size(); ++i) {
    CheckPiece(list, i);
    const auto& [text, score, type] = list.pieces[i];
    model->pieces.push_back(text);
    model->types.push_back(static_cast<lite::PieceType>(type));
    if (is_bpe) {
      model->int_scores.push_back(static_cast<int32_t>(score));
    } else {
      model->scores.push_back(score);
    }
    for (const auto& [name, id] : named) {
      if (type == PieceType::kControl && text == name) *id = static_cast<int>(i);
    }
  }
}

void AddNormalizer(const PieceList& list, lite::ModelProtoT* model) {
  if (!list.has_normalizer) return;
  const PieceList::Normalizer& from = list.normalizer;
  auto spec = std::make_unique<lite::NormalizerSpecT>();
  spec->name = from.name;
  spec->precompiled_charsmap.assign(from.charsmap.begin(), from.charsmap.end());
  spec->add_dummy_prefix = from.add_dummy_prefix;
  spec->remove_extra_whitespaces = from.remove_extra_spaces;
  spec->escape_whitespaces = from.escape_spaces;
  spec->treat_whitespace_as_suffix = list.space_as_suffix;
  model->normalizer_spec = std::move(spec);
}

void AddTries(const PieceList& list, lite::ModelProtoT* model) {
  std::vector<std::pair<std::string_view, int>> all;
  std::vector<std::pair<std::string_view, int>> user_defined;
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < list.pieces.size(); ++i) {
    const std::pair<std::string_view, int> key(list.pieces[i].text, static_cast<int>(i));
    all.push_back(key);
    texts.push_back(key.first);
    if (list.pieces[i].type == PieceType::kUserDefined) user_defined.push_back(key);
  }
  model->pieces_trie_blob = TrieOf(std::move(all));
  model->prefix_matcher_trie_blob = TrieOf(std::move(user_defined));
  model->char_bigram_trie_blob = TrieOfCharacterPairs(texts);
}

std::string Packed(const lite::ModelProtoT& model) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(lite::ModelProto::Pack(builder, &model));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

// Which pieces remain whole when they are split by merging: all of them in a model whose merges
// are in a valid order. A chunk of text that equals such a piece needs no merging.
void AddShortcuts(const PieceList& list, lite::ModelProtoT* model) {
  auto content = std::make_shared<std::string>(Packed(*model));
  const lite::SentencePieceLiteProcessor processor(content);
  if (processor.status() != lite::StatusCode::kOk) Refuse("SentencePiece Lite cannot read it");
  std::vector<uint8_t> is_whole(list.pieces.size(), 0);
  bool all = true;
  bool any = false;
  std::vector<int> ids;
  for (size_t i = 0; i < list.pieces.size(); ++i) {
    const PieceList::Piece& piece = list.pieces[i];
    const bool in_text = piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined;
    is_whole[i] = !in_text;
    if (!in_text) continue;
    if (piece.text.size() <= kMaxShortcutBytes &&
        processor.EncodeNormalizedChunk(piece.text, &ids) == lite::StatusCode::kOk &&
        ids.size() == 1 && ids[0] == static_cast<int>(i)) {
      is_whole[i] = 1;
      any = true;
    } else {
      all = false;
    }
  }
  model->has_direct_mappings = any;
  if (any && !all) model->is_direct_mapping = std::move(is_whole);
}

}  // namespace

std::string FlatModel(const PieceList& list) {
  CheckModel(list);
  lite::ModelProtoT model;
  model.model_type = static_cast<lite::ModelType>(list.algorithm);
  if (list.has_trainer) {
    model.unk_id = list.unk_id;
    model.unk_surface = list.unk_surface;
  }
  AddPieces(list, &model);
  AddNormalizer(list, &model);
  AddTries(list, &model);
  if (list.algorithm == PieceList::Algorithm::kBpe) AddShortcuts(list, &model);
  return Packed(model);
}

}  // namespace ct2triton
