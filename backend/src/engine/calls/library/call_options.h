// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ctranslate2_api.h"
#include "engine/search/search_options.h"

namespace ct2triton {

enum class Keep { kWanted, kAllFinished };

// Options for a call whose rows may not grow beyond `limit_tokens`. kAllFinished: returns every
// hypothesis that the beam search finished, instead of num_hypotheses. `target`: the vocabulary of
// the model that is called.
ctranslate2::TranslationOptions CallOptions(const SearchOptions& search, int64_t limit_tokens,
                                            const ctranslate2::Vocabulary& target,
                                            Keep keep = Keep::kWanted);

}  // namespace ct2triton
