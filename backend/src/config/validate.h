// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/decoding_options.h"
#include "config/engine_options.h"

namespace ct2triton {

// Refuses options that are wrong for every model: combinations that CTranslate2 would refuse or
// that would crash it, and values above the operator's limits (max_beam_size, ...). Call it after
// all parameters are set. Throws Error(kInvalidArgument).
void ValidateCombination(const DecodingOptions& decoding, const EngineOptions& engine);

// Whether the search is greedy with one hypothesis and without sampling.
bool SearchesGreedily(const DecodingOptions& decoding);

// Refuses searches whose first tokens may still change when later ones are known: a stream needs a
// greedy search. Throws Error(kInvalidArgument).
void ValidateStream(const DecodingOptions& decoding);

// Refuses a draft_bias without a draft. `drafts`: name of the input that may hold one draft for
// each row, and whether the request has any. Throws Error(kInvalidArgument).
void ValidateDraftBias(const DecodingOptions& decoding, const char* drafts, bool has_draft);

// Refuses a model_path that leaves the repository as written; symbolic links are checked
// by the loader. Throws Error(kInvalidArgument).
void ValidateEngine(const EngineOptions& engine);

}  // namespace ct2triton
