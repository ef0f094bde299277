// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ct2triton {

// Which files a model's directory has, so that changed ones are others: name, inode, size, times of
// change. `with_links`: each new link to a file makes it another. Throws Error where there is no
// model.bin, or the folder cannot be read.
std::string FilesIdentity(const std::string& directory, bool with_links);

}  // namespace ct2triton
