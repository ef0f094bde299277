// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ct2triton {

// Fills in what a configuration leaves out: tensors, and where it names no input at all also
// max_batch_size and dynamic batching. Keeps everything the operator wrote; ParseModelConfig checks
// it. Takes and returns the JSON text of Triton's model configuration; returns nullopt if there is
// nothing to add. Throws Error(kInternal) when the text is not JSON.
std::optional<std::string> AutoComplete(std::string_view json);

}  // namespace ct2triton
