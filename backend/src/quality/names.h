// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {

// Finds URLs, e-mail addresses, placeholders and tags, which a translation must keep unchanged.
// The characters around one do not change whether it is found.
std::vector<Span> FindNames(std::string_view text);

}  // namespace ct2triton
