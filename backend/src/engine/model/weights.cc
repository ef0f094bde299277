// SPDX-License-Identifier: Apache-2.0
#include "engine/model/weights.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/model/compute_type.h"
#include "engine/model/file_identity.h"
#include "engine/model/vocabulary_files.h"
#include "error.h"

namespace ct2triton {
namespace {

namespace fs = std::filesystem;

ModelFileConfig ReadModelFileConfig(const std::string& directory) {
  const fs::path path = fs::path(directory) / "config.json";
  std::ifstream file(path);
  if (!file) {
    ThrowInvalid(directory +
                 " has no config.json that can be read: the model was converted by an "
                 "old version of CTranslate2, convert it again");
  }
  std::stringstream text;
  text << file.rdbuf();
  return ParseModelFileConfig(text.str());
}

}  // namespace

Weights::Weights(const std::string& directory, const Device& device,
                 const std::string& compute_type)
    : directory_(directory),
      device_(device),
      compute_type_(compute_type),
      identity_(FilesIdentity(directory, /*with_links=*/false)),
      files_(ReadModelFileConfig(directory)),
      file_(directory),
      vocabularies_(ReadVocabularies(directory, files_.unk_token)) {
  source_positions_ = Rows("encoder/position_encodings/encodings");
  target_positions_ = Rows("decoder/position_encodings/encodings");
  RequireMapLine(directory);
  map_ = ReadVocabularyMap(*this);
  lists_ = ReadVocabularyLists(*this);
  CheckEmbeddingRows();
}

std::vector<const VocabularyMap*> Weights::AllMaps() const {
  std::vector<const VocabularyMap*> maps;
  if (map_) maps.push_back(&*map_);
  for (const VocabularyMap& list : lists_.all()) maps.push_back(&list);
  return maps;
}

int64_t Weights::end_id() const { return target().to_id(files_.eos_token); }

int64_t Weights::source_end_id() const { return source().to_id(files_.eos_token); }

std::optional<int64_t> Weights::padding_id() const {
  for (const char* token : {"<pad>", "<blank>"}) {
    if (target().contains(token)) return target().to_id(token);
  }
  return std::nullopt;
}

bool Weights::IsEmptySource(const Ids& source) const {
  const auto token_is = [&](size_t position, const std::string& token) {
    return this->source().to_token(source[position]) == token;
  };
  const size_t size = source.size();
  if (size == 0) return true;
  if (size == 1) return token_is(0, files_.bos_token) || token_is(0, files_.eos_token);
  size_t content = size;
  if (token_is(0, files_.bos_token)) --content;
  if (token_is(size - 1, files_.eos_token)) {
    --content;
  } else if (token_is(size - 2, files_.eos_token)) {  // a language id follows the end token
    content = content < 2 ? 0 : content - 2;
  }
  return content == 0;
}

std::optional<int64_t> Weights::Rows(const std::string& variable) const {
  const Variable* value = file_.Find(variable);
  if (value == nullptr || value->shape.empty()) return std::nullopt;
  return value->shape.front();
}

const ModelFile& Weights::file() const {
  file_.RequireCurrentFormat();
  return file_;
}

std::set<std::string> Weights::names() const {
  std::set<std::string> names;
  for (const auto& [name, variable] : file_.variables()) names.insert(name);
  return names;
}

ElementType Weights::loop_type() const {
  return ResolveComputeType(compute_type_, file_.Get(kFirstWeight).type);
}

// CTranslate2 looks rows up unchecked: a longer vocabulary would read outside the table, and a
// shorter one would fail at the first generated ID without a token.
void Weights::CheckEmbeddingRows() const {
  auto source_rows = Rows("encoder/embeddings/weight");
  if (!source_rows) source_rows = Rows("encoder/embeddings_0/weight");
  const auto target_rows = Rows("decoder/embeddings/weight");
  const auto check = [&](const char* side, size_t tokens, const std::optional<int64_t>& rows) {
    if (!rows || static_cast<int64_t>(tokens) == *rows) return;
    ThrowInvalid(directory_ + ": the " + side + " vocabulary has " + std::to_string(tokens) +
                 " tokens but its embedding table has " + std::to_string(*rows) +
                 " rows; the files do not belong together, convert the model again");
  };
  check("source", source().size(), source_rows);
  check("target", target().size(), target_rows);
}

}  // namespace ct2triton
