// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

namespace ct2triton {

// The names of all variables and attributes in a directory's model.bin, second names included:
// CTranslate2 tells of a variable only to those who know its name. Throws Error(kUnsupported) for a
// file in another format than that of a Transformer that maps sequences to sequences, written by
// CTranslate2 2.0 or later.
std::set<std::string> ReadVariableNames(const std::string& directory);

}  // namespace ct2triton
