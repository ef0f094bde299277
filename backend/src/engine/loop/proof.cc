// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/proof.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "config/model_files.h"
#include "config/parse_value.h"
#include "config/sha256.h"
#include "config/shortlist_file.h"
#include "engine/compute/cpu/products/kernel_choice.h"
#include "engine/compute/cpu/row_kernel.h"
#include "engine/model/weights.h"
#include "error.h"

namespace ct2triton {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockWords = size_t{1} << 17;  // read at a time
constexpr size_t kLanes = 4;                     // sums computed in parallel
constexpr size_t kShownReason = 300;             // characters

// Files of a model's folder, in addition to model.bin.
constexpr const char* kTextFiles[] = {"config.json",           "shared_vocabulary.json",
                                      "shared_vocabulary.txt", "source_vocabulary.json",
                                      "source_vocabulary.txt", "target_vocabulary.json",
                                      "target_vocabulary.txt", "vmap.txt",
                                      kShortlistFile};

std::optional<std::string> ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The manifest of the version; if there is none, that of the model.
fs::path ManifestOf(const std::string& directory) {
  const fs::path version = fs::path(directory).parent_path();
  std::error_code failed;
  const fs::path own = version / "ct2_model.json";
  return fs::exists(own, failed) ? own : version.parent_path() / "ct2_model.json";
}

// Empty if the process has no home directory.
fs::path CacheFile(const std::string& id) {
  const auto under = [&id](const fs::path& root) { return root / "ct2-triton" / "proofs" / id; };
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return under(cache);
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? under(fs::path(home) / ".cache") : fs::path();
}

// A sum of all bytes of a variable. It finds damage and other weights, not forgery.
uint64_t SumOf(const ModelFile& file, const Variable& variable, std::vector<uint64_t>* words) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  std::array<uint64_t, kLanes> sums = {1, 2, 3, 4};
  for (uint64_t from = 0; from < variable.bytes;) {
    const uint64_t bytes =
        std::min<uint64_t>(kBlockWords * sizeof(uint64_t), variable.bytes - from);
    const size_t read = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    const size_t used = (read + kLanes - 1) / kLanes * kLanes;
    words->assign(used, 0);
    file.Read(variable, from, bytes, words->data());
    for (size_t i = 0; i < used; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const uint64_t mixed = (sums[lane] ^ (*words)[i + lane]) * kFactor;
        sums[lane] = mixed ^ (mixed >> 29);
      }
    }
    from += bytes;
  }
  uint64_t sum = variable.bytes;
  for (const uint64_t lane : sums) sum = (sum ^ lane) * kFactor;
  return sum;
}

}  // namespace

std::string ProofId(const Weights& weights) {
  Sha256 hash;
  const auto add = [&hash](const std::string& text) { hash.Add(text + '\n'); };
  add(CT2TRITON_ENGINE);
  const bool bytes = weights.loop_type() == ElementType::kInt8;
  add(std::to_string(static_cast<int>(weights.loop_type())));
  add(FastestRowKernel().name);
  add(products::DefaultKernel(bytes ? products::WeightType::kInt8 : products::WeightType::kFloat32)
          .name);
  for (const char* name : kTextFiles) {
    const std::string text = ReadText(fs::path(weights.directory()) / name).value_or("");
    add(std::to_string(text.size()));
    add(text);
  }
  const ModelFile& file = weights.file();
  std::vector<uint64_t> words;
  std::map<const Variable*, uint64_t> sums;  // a variable with several names is summed once
  for (const auto& [name, variable] : file.variables()) {
    add(name);
    add(std::to_string(static_cast<int>(variable->type)));
    for (const int64_t dimension : variable->shape) add(std::to_string(dimension));
    const auto [sum, missing] = sums.try_emplace(variable.get());
    if (missing) sum->second = SumOf(file, *variable, &words);
    add(std::to_string(sum->second));
  }
  return hash.HexDigest();
}

ProofSearch FindProof(const Weights& weights, const std::string& id) {
  ProofSearch search;
  const fs::path manifest = ManifestOf(weights.directory());
  if (const auto text = ReadText(manifest)) {
    const auto proofs = ParseManifestProofs(*text);
    if (const auto known = proofs.find(id); known != proofs.end()) {
      if (known->second.empty()) return {true, "proved when it was prepared"};
      throw Error(ErrorCode::kUnsupported,
                  "ct2-prepare refused the decode loop: " + Quote(known->second, kShownReason) +
                      " (in " + manifest.string() + ')');
    }
    if (!proofs.empty()) {
      search.remark = "the proof in " + manifest.string() +
                      " is of other files, another type, another build or another processor";
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
