// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ct2triton {

// Checks the settings of --backend-config for this backend, given as Triton's JSON text. The
// backend has no settings of its own. Throws Error(kInvalidArgument) for any that is not Triton's.
void CheckBackendConfig(std::string_view json);

}  // namespace ct2triton
