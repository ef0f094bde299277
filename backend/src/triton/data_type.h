// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rows/id_view.h"
#include "triton_c_api.h"

namespace ct2triton {

// The type that a config writes as "TYPE_INT32"; TRITONSERVER_TYPE_INVALID for names of other types
// than integers.
TRITONSERVER_DataType IntegerFromConfig(const std::string& name);

// nullopt for types that are not integers.
std::optional<IntegerType> IntegerTypeOf(TRITONSERVER_DataType type);

// Bytes of one element of an integer type; 0 for every other type.
size_t IntegerByteSize(TRITONSERVER_DataType type);

// Writes `values` to `data` as `type`, which must be wide enough.
void NarrowIntegers(const std::vector<int64_t>& values, TRITONSERVER_DataType type, void* data);

}  // namespace ct2triton
