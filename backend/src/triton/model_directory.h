// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "config/model_config.h"

namespace ct2triton {

// The folder with the files of CTranslate2 (model.bin, ...): where `model_path` says, relative to
// the model's folder; else `<version>/model`, the folder that default_model_filename names instead,
// or the version's folder itself. Throws Error: kNotFound, naming the places; kInvalidArgument.
std::string FindModelDirectory(const std::string& model_folder, uint64_t version,
                               const ModelConfig& config);

}  // namespace ct2triton
