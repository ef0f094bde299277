// SPDX-License-Identifier: Apache-2.0
#include "serving/file_check.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "config/model_files.h"
#include "config/sha256.h"
#include "error.h"

namespace ct2triton {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument,
              "parameter verify_files: " + what +
                  "; copy the model again, or prepare it again with ct2-prepare --force");
}

std::string HashOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Refuse(path.string() + " is missing, or cannot be read");
  Sha256 hash;
  std::vector<char> piece(size_t{1} << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
    hash.Add({piece.data(), static_cast<size_t>(file.gcount())});
  }
  if (file.bad()) Refuse(path.string() + " cannot be read to its end");
  return hash.HexDigest();
}

}  // namespace

void VerifyFiles(const std::string& model_folder) {
  const fs::path manifest = fs::path(model_folder) / "ct2_model.json";
  std::ifstream file(manifest);
  if (!file) Refuse(manifest.string() + " is missing, or cannot be read");
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  for (const auto& [name, digest] : ParseManifestFiles(json)) {
    if (name == "config.pbtxt") continue;
    const fs::path path = fs::path(model_folder) / name;
    if (HashOf(path) != digest) {
      Refuse(path.string() + " has other bytes than ct2_model.json says (SHA-256)");
    }
  }
}

}  // namespace ct2triton
