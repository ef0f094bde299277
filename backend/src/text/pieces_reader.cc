// SPDX-License-Identifier: Apache-2.0
// How each family numbers its pieces: the rules of client/pieces.py.
#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "config/parse_value.h"
#include "error.h"
#include "text/pieces.h"

namespace ct2triton {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // how SentencePiece writes a space
constexpr int kLastId = 1 << 24;  // bounds the memory that a damaged file can ask for
constexpr char kOnlyJson[] =
    "; only a SentencePiece model is read here, and transformers 5 does not save it: prepare the "
    "model from a folder that has it, or send token ids";

// Source of the IDs of a family's pieces: the model's own vocabularies, a vocab.json, or the
// SentencePiece model. fairseq puts `<s> <pad> </s> <unk>` before the pieces and SentencePiece
// `<unk> <s> </s>`, so fairseq's IDs are higher by `shift`.
enum class Numbering { kNamed, kListed, kShifted };

struct Family {
  std::string_view name;
  Numbering numbering;
  const char* source;
  const char* target;
  int shift;
};

constexpr Family kFamilies[] = {
    {"nllb", Numbering::kShifted, "sentencepiece.bpe.model", "sentencepiece.bpe.model", 1},
    {"m2m100", Numbering::kListed, "sentencepiece.bpe.model", "sentencepiece.bpe.model", 0},
    {"mbart50", Numbering::kShifted, "sentencepiece.bpe.model", "sentencepiece.bpe.model", 1},
    {"mbart25", Numbering::kShifted, "sentencepiece.bpe.model", "sentencepiece.bpe.model", 1},
    {"marian", Numbering::kListed, "source.spm", "target.spm", 0},
    {"t5", Numbering::kShifted, "spiece.model", "spiece.model", 0},
    {"pieces", Numbering::kNamed, "source.spm", "target.spm", 0},
};

const Family& FamilyOf(const TokenRules& rules, const std::filesystem::path& folder) {
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.name == rules.family) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  ThrowInvalid(Quote((folder / "languages.json").string(), 200) + " names the family " +
               Quote(rules.family) + ", which is not one of " + known +
               "; correct it, or prepare the model again with this version of ct2-prepare");
}

bool HasText(PieceType type) {
  return type != PieceType::kUnknown && type != PieceType::kControl && type != PieceType::kUnused;
}

nlohmann::json ReadJson(const std::filesystem::path& file) {
  try {
    return nlohmann::json::parse(FileContent(file));
  } catch (const nlohmann::json::exception& error) {
    ThrowInvalid("cannot read " + Quote(file.string(), 200) + ": " + Quote(error.what(), 200));
  }
}

}  // namespace

// Fills the tables of a Pieces object.
class PiecesReader {
 public:
  PiecesReader(const std::filesystem::path& folder, const TokenRules& rules, Side split)
      : folder_(folder), rules_(rules), family_(FamilyOf(rules, folder)), split_(split) {}

  std::unique_ptr<const Pieces> Read() {
    if (!rules_.added_tokens.empty() && family_.numbering != Numbering::kShifted) {
      throw Error(ErrorCode::kUnsupported,
                  "tokens were added to this model's tokenizer, which texts are not split by here; "
                  "send token ids");
    }
    if (family_.numbering == Numbering::kNamed) {
      ReadNamed();
    } else if (family_.numbering == Numbering::kListed) {
      ReadListed();
    } else {
      ReadShifted();
    }
    const int space = pieces_->split_->Find(kSpace);
    if (space >= 0 && pieces_->split_->type(space) != PieceType::kUnknown) {
      pieces_->space_id_ = pieces_->id_by_piece_[static_cast<size_t>(space)];
    }
    return std::move(pieces_);
  }

 private:
  using IdOfPiece = std::function<int(int)>;

  void ReadShifted() {
    const std::filesystem::path file = folder_ / family_.source;
    if (!std::filesystem::exists(file)) {
      throw Error(ErrorCode::kUnsupported, "there is no " + Quote(file.string(), 200) + kOnlyJson);
    }
    Open(file, file);
    const int shift = family_.shift;
    const PieceModel& model = *target_;
    Number([&](int i) { return model.type(i) == PieceType::kUnknown ? rules_.unk_id : i + shift; });
    for (int i = 0; i < model.size(); ++i) {
      if (HasText(model.type(i))) AddSurface(i + shift, model.text(i));
    }
    if (rules_.added_tokens.empty()) return;
    pieces_->with_tokens_ = std::make_unique<const TextWithTokens>(file, rules_);
    for (const AddedToken& token : rules_.added_tokens) AddToken(token);
  }

  void AddToken(const AddedToken& token) {
    using Kind = Pieces::Surface::Kind;
    SurfaceOf(token.id, token.content) =
        token.special ? Pieces::Surface{} : Pieces::Surface{Kind::kText, WithSpaces(token.content)};
  }

  void ReadListed() {
    Open(folder_ / (split_ == Side::kTarget ? family_.target : family_.source),
         folder_ / family_.target);
    const auto vocabulary =
        ReadJson(folder_ / "vocab.json").get<std::unordered_map<std::string, int>>();
    Number([&](int i) {
      const auto found = vocabulary.find(std::string(pieces_->split_->text(i)));
      return found == vocabulary.end() ? rules_.unk_id : found->second;
    });
    std::unordered_set<int> special(rules_.special_ids.begin(), rules_.special_ids.end());
    special.insert(rules_.unk_id);
    for (const auto& [piece, id] : vocabulary) {
      if (special.count(id) == 0) AddSurface(id, piece);
    }
  }

  // For converted models: pieces have the IDs of the model's own vocabularies, one for each side.
  void ReadNamed() {
    if (std::filesystem::exists(folder_ / "tokenizer.json")) {
      throw Error(ErrorCode::kUnsupported,
                  "this model's tokenizer is a tokenizer.json" + std::string(kOnlyJson));
    }
    const std::filesystem::path single = folder_ / "sentencepiece.model";
    const bool is_single = std::filesystem::exists(single);
    const auto source = is_single ? single : folder_ / family_.source;
    const auto target = is_single ? single : folder_ / family_.target;
    if (!std::filesystem::exists(source)) {
      throw Error(ErrorCode::kUnsupported,
                  "there is no " + Quote(source.string(), 200) + kOnlyJson);
    }
    Open(split_ == Side::kTarget ? target : source, target);
    const auto of_source = Vocabulary("source");
    const auto of_target = Vocabulary("target");
    const auto& tokens = split_ == Side::kTarget ? of_target : of_source;
    std::unordered_map<std::string_view, int> ids;  // the first ID of a repeated piece
    for (size_t i = 0; i < tokens.size(); ++i) ids.emplace(tokens[i], static_cast<int>(i));
    if (rules_.unk_id < 0 || static_cast<size_t>(rules_.unk_id) >= of_source.size()) {
      ThrowInvalid("the vocabulary in " + Quote(folder_.string(), 200) + " has " +
                   std::to_string(of_source.size()) + " entries, and none for the unknown token " +
                   std::to_string(rules_.unk_id));
    }
    const auto unknown = ids.find(of_source[static_cast<size_t>(rules_.unk_id)]);
    const int unknown_id = unknown == ids.end() ? rules_.unk_id : unknown->second;
    Number([&](int i) {
      const auto found = ids.find(pieces_->split_->text(i));
      return found == ids.end() ? unknown_id : found->second;
    });
    const auto other = source == target ? target_ : std::make_shared<const PieceModel>(source);
    for (size_t i = 0; i < of_target.size(); ++i) {
      if (IsTextOf(*other, of_target[i]) || IsTextOf(*target_, of_target[i])) {
        AddSurface(static_cast<int>(i), of_target[i]);
      }
    }
  }

  static bool IsTextOf(const PieceModel& model, std::string_view piece) {
    const int id = model.Find(piece);
    return id >= 0 && HasText(model.type(id));
  }

  std::vector<std::string> Vocabulary(const std::string& side) const {
    const std::filesystem::path shared = folder_ / "shared_vocabulary.json";
    const bool is_shared = std::filesystem::exists(shared);
    return ReadJson(is_shared ? shared : folder_ / (side + "_vocabulary.json"))
        .get<std::vector<std::string>>();
  }

  void Open(const std::filesystem::path& split, const std::filesystem::path& target) {
    target_ = std::make_shared<const PieceModel>(target);
    pieces_->split_ = split == target ? target_ : std::make_shared<const PieceModel>(split);
  }

  void Number(const IdOfPiece& id_of) {
    for (int i = 0; i < pieces_->split_->size(); ++i) pieces_->id_by_piece_.push_back(id_of(i));
  }

  // The text of a piece that the target's model does not have is the piece as written.
  void AddSurface(int id, std::string_view piece) {
    using Kind = Pieces::Surface::Kind;
    const int number = target_->Find(piece);
    const PieceType type = number < 0 ? PieceType::kNormal : target_->type(number);
    Pieces::Surface surface{Kind::kText, WithSpaces(piece)};
    if (type == PieceType::kControl) surface.text.clear();
    if (type == PieceType::kUnknown) surface.text = target_->unk_surface();
    if (type == PieceType::kByte) {  // "<0x41>"
      const int byte = std::stoi(std::string(piece.substr(3, 2)), nullptr, 16);
      surface = {Kind::kByte, std::string(1, static_cast<char>(byte))};
    }
    SurfaceOf(id, piece) = std::move(surface);
  }

  // Makes room for an id.
  Pieces::Surface& SurfaceOf(int id, std::string_view piece) {
    if (id < 0 || id > kLastId) {
      ThrowInvalid("the vocabulary in " + Quote(folder_.string(), 200) + " gives " + Quote(piece) +
                   " the id " + std::to_string(id));
    }
    auto& surfaces = pieces_->surfaces_;
    if (surfaces.size() <= static_cast<size_t>(id)) surfaces.resize(static_cast<size_t>(id) + 1);
    return surfaces[static_cast<size_t>(id)];
  }

  const std::filesystem::path& folder_;
  const TokenRules& rules_;
  const Family& family_;
  Side split_;
  std::shared_ptr<const PieceModel> target_;
  std::unique_ptr<Pieces> pieces_{new Pieces};
};

bool Pieces::SidesDiffer(const std::filesystem::path& folder, const TokenRules& rules) {
  const Family& family = FamilyOf(rules, folder);
  if (family.numbering != Numbering::kNamed)
    return std::string_view(family.source) != family.target;
  return !std::filesystem::exists(folder / "sentencepiece.model") || NumbersDiffer(folder, rules);
}

bool Pieces::NumbersDiffer(const std::filesystem::path& folder, const TokenRules& rules) {
  return FamilyOf(rules, folder).numbering == Numbering::kNamed &&
         !std::filesystem::exists(folder / "shared_vocabulary.json");
}

std::unique_ptr<const Pieces> Pieces::Read(const std::filesystem::path& folder,
                                           const TokenRules& rules, Side split) {
  try {
    return PiecesReader(folder, rules, split).Read();
  } catch (const nlohmann::json::exception& error) {
    ThrowInvalid("the vocabulary in " + Quote(folder.string(), 200) +
                 " is damaged: " + Quote(error.what(), 200));
  }
}

}  // namespace ct2triton
