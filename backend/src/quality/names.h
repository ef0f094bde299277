// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {

// Finds URLs, e-mail addresses, placeholders and tags, which a translation must keep unchanged.
// Each is found by its own characters, whatever surrounds it.
std::vector<Span> FindNames(std::string_view text);

}  // namespace ct2triton
