// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/calls/library/ct2_model.h"
#include "engine/model/vocabulary_map.h"

namespace ct2triton {

// Runs a few tokens through the model. This checks our declarations of the result structs, and
// detects a missing library (cuBLAS) at load instead of at the first request. Throws
// Error(kUnsupported). `map`: of vmap.txt; null: none; `end_id`: of the target.
void TryTranslation(const Ct2Model& model, const VocabularyMap* map, int64_t end_id);

}  // namespace ct2triton
