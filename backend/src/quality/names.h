// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace ct2triton {

// Where a text has URLs, e-mail addresses, placeholders and tags: what a translation keeps as it
// is. Each is found by its own characters, whatever stands around it.
std::vector<Span> FindNames(std::string_view text);

}  // namespace ct2triton
