// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "config/engine_options.h"
#include "engine/model/weights.h"
#include "engine/search/search_options.h"
#include "rows/checked_row.h"
#include "rows/id_view.h"
#include "rows/row_names.h"

namespace ct2triton {

// Checks one row against the model and fixes its own length limit, so that nothing about it can
// fail, or change, when it shares a call with others. Copies no more of it than is used.
//
// The limit is max_decoding_length, or max_decoding_length_multiple times the row's own source
// length (rounded down, at least 1), within the model's positions and decoding_length_limit.
// Throws Error(kInvalidArgument); `index` is the row's number within its request; `names`
// says what the message calls it.
CheckedRow CheckRow(const RowInput& row, size_t index, const RowNames& names,
                    const std::shared_ptr<const SearchOptions>& search, const Weights& weights,
                    const EngineOptions& engine);

// The longest source that is taken, in ids: max_input_length or the model's positions.
int64_t LongestSourceTokens(const DecodingOptions& options, const Weights& weights);

// The vocabulary map that was made for a row like this: the list of the language that it names, or
// vmap.txt if it names one of the languages of vmap_prefix_ids and vmap_source_ids. Null where
// there is none, or where the row's prefix has other tokens.
const VocabularyMap* MapFor(const RowInput& row, const Weights& weights,
                            const EngineOptions& engine);

// What is wrong with a search of rows with this length limit, as the end of a sentence: it may come
// to keep more than max_search_tokens, which is not 0 here. Nothing if it fits.
std::optional<std::string> SearchComplaint(const SearchOptions& search, int64_t limit_tokens,
                                           const EngineOptions& engine);

}  // namespace ct2triton
