// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/proof.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "config/model_files.h"
#include "config/sha256.h"
#include "engine/model/weights.h"

namespace ct2triton {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kReadBytes = 64;  // of each variable

std::optional<std::string> ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The nearest manifest: of the version, else of the model.
fs::path ManifestOf(const std::string& directory) {
  const fs::path version = fs::path(directory).parent_path();
  std::error_code failed;
  const fs::path own = version / "ct2_model.json";
  return fs::exists(own, failed) ? own : version.parent_path() / "ct2_model.json";
}

// Empty where the process has no home.
fs::path CacheFile(const std::string& id) {
  const auto under = [&id](const fs::path& root) { return root / "ct2-triton" / "proofs" / id; };
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return under(cache);
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? under(fs::path(home) / ".cache") : fs::path();
}

}  // namespace

std::string ProofId(const Weights& weights) {
  Sha256 hash;
  const auto add = [&hash](const std::string& text) { hash.Add(text + '\n'); };
  add(CT2TRITON_VERSION);
  add(std::to_string(static_cast<int>(weights.loop_type())));
  add(ReadText(fs::path(weights.directory()) / "config.json").value_or(""));
  add(std::to_string(weights.source().size()) + ' ' + std::to_string(weights.target().size()));
  for (const VocabularyMap* map : weights.AllMaps()) add(std::to_string(map->size()));
  const ModelFile& file = weights.file();
  std::string first;
  for (const auto& [name, variable] : file.variables()) {
    add(name);
    add(std::to_string(static_cast<int>(variable->type)));
    for (const int64_t dimension : variable->shape) add(std::to_string(dimension));
    first.resize(std::min(kReadBytes, variable->bytes));
    file.Read(*variable, 0, first.size(), first.data());
    add(first);
  }
  return hash.HexDigest();
}

ProofSearch FindProof(const Weights& weights, const std::string& id) {
  ProofSearch search;
  const fs::path manifest = ManifestOf(weights.directory());
  if (const auto text = ReadText(manifest)) {
    const auto proofs = ParseManifestProofs(*text);
    if (proofs.count(id) > 0) return {true, "proved when it was prepared"};
    if (!proofs.empty()) {
      search.remark = "the proof in " + manifest.string() +
                      " is of other files, of another type or of another version";
    }
  }
  const fs::path kept = CacheFile(id);
  const auto text = kept.empty() ? std::nullopt : ReadText(kept);
  if (!text) return search;
  if (text->rfind(id + '\n', 0) == 0) return {true, "proved at an earlier load"};
  return {false, "the proof " + kept.string() + " is damaged"};
}

void KeepProof(const std::string& id, const std::string& report) noexcept {
  try {
    const fs::path path = CacheFile(id);
    if (path.empty()) return;
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    const fs::path temporary = path.string() + '.' + std::to_string(getpid());
    std::ofstream file(temporary, std::ios::binary);
    file << id << '\n' << report << '\n';
    file.close();
    if (file) fs::rename(temporary, path, failed);
    if (!file || failed) fs::remove(temporary, failed);
  } catch (const std::exception&) {  // the next load tries the model again
  }
}

}  // namespace ct2triton
