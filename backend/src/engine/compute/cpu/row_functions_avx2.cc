// SPDX-License-Identifier: Apache-2.0
//
// For processors with AVX2 and FMA.
#include "engine/compute/cpu/row_functions_body.h"

namespace ct2triton {

const RowFunctions kAvx2RowFunctions = {&LayerNorm, &RmsNorm, &LogSoftmax};

}  // namespace ct2triton
