// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace ct2triton {

// The known name that `name` probably means: one a few typing errors away (missing, surplus, wrong
// or swapped characters; case and - for _ are ignored), else the only one that contains it, or that
// it contains, as whole words ("temperature" in "sampling_temperature").
std::optional<std::string_view> NearestName(std::string_view name,
                                            const std::vector<std::string_view>& known);

}  // namespace ct2triton
