// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ct2triton {

// Checks what --backend-config has set for this backend, the JSON text that Triton hands out: it
// has no settings but Triton's own. Throws Error(kInvalidArgument).
void CheckBackendConfig(std::string_view json);

}  // namespace ct2triton
