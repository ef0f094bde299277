// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "engine/model/weights.h"
#include "engine/search/search_options.h"
#include "rows/checked_row.h"

namespace ct2triton {

// What keeps rows of this search out of the decode loop, so that a call of CTranslate2 must run
// them: the options, as the end of a sentence. Nothing where the loop can run them.
// About the model as such: DeviceModel's constructor.
std::optional<std::string> WhyNotLoop(const SearchOptions& search);
// The same of one row, whose search is one that the loop can run.
std::optional<std::string> WhyNotLoop(const CheckedRow& row, const Weights& weights);

}  // namespace ct2triton
