// SPDX-License-Identifier: Apache-2.0
#include "triton/model_directory.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "error.h"

namespace ct2triton {
namespace {

namespace fs = std::filesystem;

bool HoldsModel(const fs::path& folder) {
  const fs::path file = folder / "model.bin";
  std::error_code failed;
  const fs::file_status status = fs::status(file, failed);
  if (failed && status.type() != fs::file_type::not_found) {
    throw Error(ErrorCode::kUnavailable,
                "'" + file.string() + "' cannot be read: " + failed.message());
  }
  return fs::is_regular_file(status);
}

// Replaces {version} by the version's number.
std::string ForVersion(std::string path, uint64_t version) {
  static const std::string name = "{version}";
  for (size_t at = path.find(name); at != std::string::npos; at = path.find(name)) {
    path.replace(at, name.size(), std::to_string(version));
  }
  return path;
}

std::vector<fs::path> Candidates(const fs::path& model_folder, uint64_t version,
                                 const ModelConfig& config) {
  if (!config.engine.model_path.empty()) {
    return {(model_folder / ForVersion(config.engine.model_path, version)).lexically_normal()};
  }
  const fs::path version_folder = model_folder / std::to_string(version);
  std::vector<fs::path> candidates;
  const fs::path named = config.default_model_filename;
  if (named.filename() != named) {
    ThrowInvalid("default_model_filename: '" + named.string() +
                 "' must be a name in the version folder");
  }
  if (!named.empty() && named != "model") candidates.push_back(version_folder / named);
  candidates.push_back(version_folder / "model");
  candidates.push_back(version_folder);
  return candidates;
}

}  // namespace

std::string FindModelDirectory(const std::string& model_folder, uint64_t version,
                               const ModelConfig& config) {
  std::string looked_in;
  for (const fs::path& folder : Candidates(model_folder, version, config)) {
    if (HoldsModel(folder)) return folder.string();
    looked_in += (looked_in.empty() ? "'" : ", '") + folder.string() + "'";
  }
  std::string text = "no CTranslate2 model was found: there is no model.bin in " + looked_in;
  if (config.engine.model_path.rfind("..", 0) == 0) {
    text +=
        "; from a repository in object storage (s3://, gs://, as://) Triton copies each model's "
        "folder alone, without those beside it: prepare such a model with ct2-prepare --io text, "
        "which has all files in its own folder";
  }
  throw Error(ErrorCode::kNotFound, text);
}

}  // namespace ct2triton
