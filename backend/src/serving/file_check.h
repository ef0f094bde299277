// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ct2triton {

// Holds the files of a prepared model against the SHA-256 that ct2-prepare wrote into its
// ct2_model.json. config.pbtxt is meant to be edited, and is passed over. It finds damage, not an
// attacker, who could change the manifest as well.
// Throws Error(kInvalidArgument), which names the file, if one is missing or has other bytes, or if
// there is no manifest.
void VerifyFiles(const std::string& model_folder);

}  // namespace ct2triton
