// SPDX-License-Identifier: Apache-2.0
#include "text/piece_list.h"

#include <cstring>
#include <utility>

#include "error.h"

namespace ct2triton {
namespace {

[[noreturn]] void Damaged(const char* what) {
  ThrowInvalid(std::string("it is not a SentencePiece model, or it is damaged: ") + what);
}

// Protobuf's wire format: one field after the other, each with a number and a value.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  // Steps to the next field; false at the end.
  bool Next() {
    if (rest_.empty()) return false;
    const uint64_t tag = TakeVarint();
    number_ = static_cast<int>(tag >> 3);
    switch (tag & 7) {
      case 0:
        varint_ = TakeVarint();
        break;
      case 1:
        bytes_ = Take(8);
        break;
      case 2:
        bytes_ = Take(TakeVarint());
        break;
      case 5:
        bytes_ = Take(4);
        break;
      default:
        Damaged("a field of an unknown kind");
    }
    return true;
  }

  int number() const { return number_; }
  std::string_view bytes() const { return bytes_; }
  std::string text() const { return std::string(bytes_); }
  bool flag() const { return varint_ != 0; }
  int integer() const { return static_cast<int>(varint_); }
  float real() const {
    if (bytes_.size() != sizeof(float)) Damaged("a number of the wrong size");
    float value;
    std::memcpy(&value, bytes_.data(), sizeof(value));
    return value;
  }

 private:
  uint64_t TakeVarint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(Take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    Damaged("a number that does not end");
  }

  std::string_view Take(uint64_t size) {
    if (size > rest_.size()) Damaged("it ends too early");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  int number_ = 0;
  uint64_t varint_ = 0;
  std::string_view bytes_;
};

// Field numbers of SentencePiece's sentencepiece_model.proto.
PieceList::Piece ParsePiece(std::string_view bytes) {
  PieceList::Piece piece;
  for (Fields field(bytes); field.Next();) {
    if (field.number() == 1) piece.text = field.text();
    if (field.number() == 2) piece.score = field.real();
    if (field.number() == 3) piece.type = static_cast<PieceType>(field.integer());
  }
  if (piece.type < PieceType::kNormal || piece.type > PieceType::kByte) {
    Damaged("a piece of an unknown type");
  }
  return piece;
}

void ParseTrainer(std::string_view bytes, PieceList* list) {
  list->has_trainer = true;
  const std::pair<int, std::string*> texts[] = {{44, &list->unk_surface},
                                                {46, &list->bos_piece},
                                                {47, &list->eos_piece},
                                                {48, &list->pad_piece}};
  for (Fields field(bytes); field.Next();) {
    if (field.number() == 3) list->algorithm = static_cast<PieceList::Algorithm>(field.integer());
    if (field.number() == 24) list->space_as_suffix = field.flag();
    if (field.number() == 40) list->unk_id = field.integer();
    for (const auto& [number, text] : texts) {
      if (field.number() == number) *text = field.text();
    }
  }
}

PieceList::Normalizer ParseNormalizer(std::string_view bytes) {
  PieceList::Normalizer normalizer;
  for (Fields field(bytes); field.Next();) {
    if (field.number() == 1) normalizer.name = field.text();
    if (field.number() == 2) normalizer.charsmap = field.text();
    if (field.number() == 3) normalizer.add_dummy_prefix = field.flag();
    if (field.number() == 4) normalizer.remove_extra_spaces = field.flag();
    if (field.number() == 5) normalizer.escape_spaces = field.flag();
  }
  return normalizer;
}

}  // namespace

PieceList ParsePieceList(std::string_view content) {
  PieceList list;
  for (Fields field(content); field.Next();) {
    if (field.number() == 1) list.pieces.push_back(ParsePiece(field.bytes()));
    if (field.number() == 2) ParseTrainer(field.bytes(), &list);
    if (field.number() == 3) {
      list.has_normalizer = true;
      list.normalizer = ParseNormalizer(field.bytes());
    }
    if (field.number() == 5) {
      list.has_denormalizer = !ParseNormalizer(field.bytes()).charsmap.empty();
    }
  }
  if (list.pieces.empty()) Damaged("it has no pieces");
  return list;
}

}  // namespace ct2triton
