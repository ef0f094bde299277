// SPDX-License-Identifier: Apache-2.0
#include "engine/model/vocabulary.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "config/model_files.h"
#include "error.h"

namespace ct2triton {
namespace {

namespace fs = std::filesystem;

// A carriage return is a part of its token unless each line ends with one.
std::vector<std::string> TokensOfLines(const std::string& text) {
  std::vector<std::string> tokens;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) tokens.push_back(std::move(line));
  const auto returns = [](const std::string& line) { return !line.empty() && line.back() == '\r'; };
  if (std::all_of(tokens.begin(), tokens.end(), returns)) {
    for (std::string& token : tokens) token.pop_back();
  }
  return tokens;
}

// None if there is no such file.
std::optional<std::string> Content(const fs::path& path) {
  std::error_code unknown;
  const auto status = fs::status(path, unknown);
  if (status.type() == fs::file_type::not_found) return std::nullopt;
  std::ifstream file;
  if (fs::is_regular_file(status)) file.open(path, std::ios::binary);
  if (file.is_open()) return std::string{std::istreambuf_iterator<char>(file), {}};
  throw Error(ErrorCode::kUnavailable, path.string() + " cannot be read");
}

// Null if there is no such vocabulary.
std::shared_ptr<const Vocabulary> Read(const fs::path& directory, const std::string& name,
                                       const std::string& unknown) {
  std::vector<std::string> tokens;
  const fs::path json = directory / (name + ".json");
  if (const auto content = Content(json)) {
    tokens = ParseVocabulary(*content, json.string());
  } else if (const auto lines = Content(directory / (name + ".txt"))) {
    tokens = TokensOfLines(*lines);
  } else {
    return nullptr;
  }
  return std::make_shared<const Vocabulary>(std::move(tokens), unknown);
}

// CTranslate2 numbers the sources of a model that has several.
std::shared_ptr<const Vocabulary> ReadSource(const fs::path& directory,
                                             const std::string& unknown) {
  if (auto source = Read(directory, "source_vocabulary", unknown)) return source;
  std::vector<std::shared_ptr<const Vocabulary>> sources;
  do {
    const std::string number = std::to_string(sources.size() + 1);
    sources.push_back(Read(directory, "source_" + number + "_vocabulary", unknown));
  } while (sources.back() != nullptr);
  if (sources.size() <= 2) return sources.front();
  throw Error(ErrorCode::kUnsupported, directory.string() + " has " +
                                           std::to_string(sources.size() - 1) +
                                           " source vocabularies (factors); only one is supported");
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> tokens, const std::string& unknown) {
  ids_.reserve(tokens.size() + 1);
  tokens_.reserve(tokens.size() + 1);
  for (std::string& token : tokens) Add(std::move(token));
  if (!contains(unknown)) Add(unknown);
  unknown_ = ids_.at(unknown);
}

void Vocabulary::Add(std::string token) {
  const auto id = static_cast<int64_t>(tokens_.size());
  tokens_.push_back(&ids_.emplace(std::move(token), id).first->first);
}

int64_t Vocabulary::to_id(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? unknown_ : found->second;
}

Vocabularies ReadVocabularies(const std::string& directory, const std::string& unknown) {
  if (auto shared = Read(directory, "shared_vocabulary", unknown)) return {shared, shared};
  const auto require = [&](const char* side, std::shared_ptr<const Vocabulary> read) {
    if (read != nullptr) return read;
    throw Error(ErrorCode::kNotFound, directory + " has no " + side +
                                          " vocabulary: shared_vocabulary.json is missing, and " +
                                          side + "_vocabulary.json, and both as .txt");
  };
  auto target = require("target", Read(directory, "target_vocabulary", unknown));
  return {require("source", ReadSource(directory, unknown)), std::move(target)};
}

}  // namespace ct2triton
