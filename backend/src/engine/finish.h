// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rows/checked_row.h"
#include "rows/row.h"

namespace ct2triton {

// Makes a hypothesis of the ids that a search generated, the target prefix included: takes the end
// token off the end, unless asked for, and says why the search ended.
Hypothesis FinishHypothesis(const CheckedRow& row, Ids ids);

// The answer to a row with nothing to translate: its prefix echoed, as CTranslate2 does.
RowResult EchoPrefix(const CheckedRow& row);

}  // namespace ct2triton
