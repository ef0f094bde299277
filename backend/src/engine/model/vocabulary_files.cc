// SPDX-License-Identifier: Apache-2.0
#include "engine/model/vocabulary_files.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "error.h"

namespace ct2triton {
namespace {

namespace fs = std::filesystem;

// Tokens that are candidates in every list.
Ids AlwaysCandidates(const Weights& weights) {
  const ModelFileConfig& files = weights.files();
  Ids own;
  for (const auto& token : {files.unk_token, files.bos_token, files.eos_token,
                            files.decoder_start_token.value_or(files.eos_token)}) {
    own.push_back(weights.target().to_id(token));
  }
  return own;
}

}  // namespace

void RequireMapLine(const std::string& directory) {
  const fs::path path = fs::path(directory) / "vmap.txt";
  std::ifstream file(path);
  std::string line;
  if (!file || std::getline(file, line)) return;
  ThrowInvalid(path.string() +
               " is empty or not a file; write the vocabulary map again, or remove "
               "it to have none");
}

std::optional<VocabularyMap> ReadVocabularyMap(const Weights& weights) {
  std::ifstream file(fs::path(weights.directory()) / "vmap.txt");
  if (!file) return std::nullopt;
  return VocabularyMap(file, weights.target(), weights.end_id(), AlwaysCandidates(weights));
}

VocabularyLists ReadVocabularyLists(const Weights& weights) {
  const fs::path path = fs::path(weights.directory()) / kShortlistFile;
  if (!fs::exists(path)) return {};
  if (weights.vocabulary_map()) {
    ThrowInvalid(weights.directory() + " has both vmap.txt and " + kShortlistFile +
                 "; keep one list for all languages, or one for each");
  }
  const std::ifstream file(path);
  std::stringstream text;
  if (!file || !fs::is_regular_file(path) || !(text << file.rdbuf())) {
    ThrowInvalid(path.string() + " cannot be read, or is empty");
  }
  return VocabularyLists(ParseShortlists(text.str()), weights.source(), weights.target(),
                         weights.end_id(), AlwaysCandidates(weights));
}

}  // namespace ct2triton
