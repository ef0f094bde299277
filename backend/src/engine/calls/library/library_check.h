// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ct2triton {

// The version of the CTranslate2 library that is loaded, read from its file name: "4.8.5".
// Throws Error(kUnsupported) if the name has none.
std::string LibraryVersion();

// Holds the loaded library against backend/abi/ctranslate2_api.h: version, layout of
// TranslationOptions, order of virtual functions. Structs that only come back from the library are
// checked by TryTranslation (trial_translation.h).
// Throws Error(kUnsupported) at the first difference. The result is kept: later calls cost nothing.
void CheckLibrary();

}  // namespace ct2triton
