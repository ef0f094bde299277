// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ct2triton {

// Identifies the files of a model's directory and their content: name, inode, size, times of
// change. `with_links`: each new link to a file changes it. Throws Error if there is no model.bin,
// or the folder cannot be read.
std::string FilesIdentity(const std::string& directory, bool with_links);

}  // namespace ct2triton
