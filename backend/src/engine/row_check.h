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

// Checks one row against the model and fixes its own length limit, so that it cannot fail or change
// when it shares a call with other rows. Copies only the part that is used.
//
// The limit is max_decoding_length, or max_decoding_length_multiple times the row's own source
// length (rounded down, at least 1), within the model's positions and decoding_length_limit. Throws
// Error(kInvalidArgument); `index`: of the row in its request; `names`: how the message refers to
// it.
CheckedRow CheckRow(const RowInput& row, size_t index, const RowNames& names,
                    const std::shared_ptr<const SearchOptions>& search, const Weights& weights,
                    const EngineOptions& engine);

// The longest accepted source, in IDs: max_input_length or the model's positions.
int64_t LongestSourceTokens(const DecodingOptions& options, const Weights& weights);

// The vocabulary map for a row: the list of the row's language, or vmap.txt if its language is
// among vmap_prefix_ids and vmap_source_ids. Null if there is none, or the row's prefix has other
// tokens.
const VocabularyMap* MapFor(const RowInput& row, const Weights& weights,
                            const EngineOptions& engine);

// Why a search of rows with this length limit is refused, as the end of a sentence: it may keep
// more than max_search_tokens, which must not be 0. None: it is accepted.
std::optional<std::string> SearchComplaint(const SearchOptions& search, int64_t limit_tokens,
                                           const EngineOptions& engine);

}  // namespace ct2triton
