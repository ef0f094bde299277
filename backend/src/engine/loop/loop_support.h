// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "engine/model/weights.h"
#include "engine/search/search_options.h"
#include "rows/checked_row.h"

namespace ct2triton {

// Why the loop cannot run rows of this search, so that a call of CTranslate2 must: the options, as
// the end of a sentence. None: it can. DeviceModel's constructor checks the model itself.
std::optional<std::string> WhyNotLoop(const SearchOptions& search);
// Why the loop cannot run this row, although it can run its search.
std::optional<std::string> WhyNotLoop(const CheckedRow& row, const Weights& weights);

// The token that starts the decoder, and the forced ones.
Ids FirstIds(const CheckedRow& row, const Weights& weights);

// Tokens of a row's source as the encoder sees it.
size_t EncodedTokens(const CheckedRow& row, const Weights& weights);
// Tokens that the cache of a row holds: of each of its beams up to its limit.
size_t CacheTokens(const CheckedRow& row, const Weights& weights);

}  // namespace ct2triton
