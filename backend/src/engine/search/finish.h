// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rows/checked_row.h"
#include "rows/row.h"

namespace ct2triton {

class Weights;

// Whether the ids that a search generated end with their end token.
enum class EndToken { kThere, kTakenOff };

// Makes a hypothesis of the ids that a search generated, the target prefix included: takes the end
// token off the end, unless asked for, and says why the search ended.
Hypothesis FinishHypothesis(const CheckedRow& row, Ids ids, EndToken end = EndToken::kThere);

// Says of a finished hypothesis where its ids come from, if the row asks for it. `positions`: in
// the source, of every generated id, at least as many as there are left.
void AddAlignments(const CheckedRow& row, const Ids& positions, Hypothesis* hypothesis);

// Whether an id of an answer is the unknown token.
bool IsUnknown(int64_t id, const Weights& weights);

// What CTranslate2 puts in the place of an unknown token that comes from this position: the source
// token, as far as the target vocabulary knows it.
int64_t IdOfSource(const CheckedRow& row, int64_t position, const Weights& weights);

// The answer to a row with nothing to translate: its prefix echoed, as CTranslate2 does.
RowResult EchoPrefix(const CheckedRow& row);

}  // namespace ct2triton
