// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/model/weights.h"

namespace ct2triton {

// Runs a few tokens through the model: what comes back must make sense in our declarations of the
// result structs, and a missing library (cuBLAS) shows at load instead of at the first request.
// Throws Error(kUnsupported).
void TryTranslation(const Weights& weights);

}  // namespace ct2triton
