// SPDX-License-Identifier: Apache-2.0
#include "serving/file_check.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "config/model_files.h"
#include "config/sha256.h"
#include "error.h"

namespace ct2triton {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecordName = "ct2_model.json";

[[noreturn]] void Refuse(const std::string& what) {
  ThrowInvalid("parameter verify_files: " + what +
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

// Whether a file is in the folder of a version, such as 1/model/model.bin.
bool IsOfVersion(const std::string& name) {
  const size_t end = name.find('/');
  return end != std::string::npos && name.find_first_not_of("0123456789") == end;
}

// Compares the files of one record with it, without those of versions unless `with_versions`.
void VerifyRecord(const fs::path& record, bool with_versions) {
  std::ifstream file(record);
  if (!file) Refuse(record.string() + " is missing, or cannot be read");
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  for (const auto& [name, digest] : ParseManifestFiles(json)) {
    if (name == "config.pbtxt" || (!with_versions && IsOfVersion(name))) continue;
    const fs::path path = record.parent_path() / name;
    if (HashOf(path) != digest) {
      Refuse(path.string() + " has changed: its SHA-256 is not that in ct2_model.json");
    }
  }
}

}  // namespace

std::string RecordFile(const std::string& model_folder, uint64_t version) {
  const fs::path own = fs::path(model_folder) / std::to_string(version) / kRecordName;
  std::error_code failed;
  const bool is_own = version != 1 || fs::exists(own, failed);
  return is_own ? own.string() : (fs::path(model_folder) / kRecordName).string();
}

void VerifyFiles(const std::string& model_folder, uint64_t version) {
  const fs::path shared = fs::path(model_folder) / kRecordName;
  const fs::path record = RecordFile(model_folder, version);
  VerifyRecord(shared, record == shared);
  if (record != shared) VerifyRecord(record, true);
}

}  // namespace ct2triton
