// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/calls/call_library.h"

namespace ct2triton {

class Weights;

// CTranslate2's own model of these files, loaded unless it is in use. Throws Error if CTranslate2
// cannot load it, or files changed since they were read.
std::shared_ptr<const LibraryModel> LibraryOf(const Weights& weights);

}  // namespace ct2triton
