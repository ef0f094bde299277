// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ct2triton {

// The version of the CTranslate2 library that is loaded, read from its file name: "4.8.5".
// Throws Error(kUnsupported) if the name has none.
std::string LibraryVersion();

// Checks the loaded library against backend/abi/ctranslate2_api.h: version, layout of
// TranslationOptions, order of virtual functions. TryTranslation (trial_translation.h) checks
// structs that the library only returns. Throws Error(kUnsupported) at the first difference.
// Success is remembered.
void CheckLibrary();

}  // namespace ct2triton
