// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/calls/call_library.h"

namespace ct2triton {

// The CTranslate2 that this binary is linked with. Throws Error(kUnsupported) if it does not match
// our declarations.
const CallLibrary& LinkedLibrary();

}  // namespace ct2triton
