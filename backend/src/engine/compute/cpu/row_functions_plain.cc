// SPDX-License-Identifier: Apache-2.0
//
// For any processor.
#include "engine/compute/cpu/row_functions_body.h"

namespace ct2triton {

const RowFunctions kPlainRowFunctions = {&LayerNorm, &RmsNorm, &LogSoftmax};

}  // namespace ct2triton
