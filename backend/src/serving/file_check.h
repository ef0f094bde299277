// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ct2triton {

// The record of a version of a prepared model: its own, `<version>/ct2_model.json`, or for version
// 1 without one that of the model. It may be missing.
std::string RecordFile(const std::string& model_folder, uint64_t version);

// Compares the files of a version of a prepared model with the SHA-256 that ct2-prepare wrote into
// its record and, for what versions share, into the model's. Ignores config.pbtxt, which operators
// edit. Detects damage, not an attacker, who could change the manifest too. Throws
// Error(kInvalidArgument), which names the file, if one is missing or has changed, or if there is
// no manifest.
void VerifyFiles(const std::string& model_folder, uint64_t version);

}  // namespace ct2triton
