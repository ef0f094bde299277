// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rows/checked_row.h"
#include "rows/row.h"

namespace ct2triton {

class Weights;

// Whether generated IDs still have their end token.
enum class EndToken { kThere, kTakenOff };

// Makes a hypothesis of the IDs that a search generated, including the target prefix: removes the
// end token unless it is requested, and sets the finish reason.
Hypothesis FinishHypothesis(const CheckedRow& row, Ids ids, EndToken end = EndToken::kThere);

// Adds alignments to a finished hypothesis, if the row requests them or is judged. `positions`:
// source position of every generated ID, at least as many as the hypothesis has IDs; none: not
// known.
void AddAlignments(const CheckedRow& row, const Ids& positions, Hypothesis* hypothesis);

// Whether an id of an answer is the unknown token.
bool IsUnknown(int64_t id, const Weights& weights);

// CTranslate2's replacement for an unknown token aligned to this position: the source token, if it
// is in the target vocabulary.
int64_t IdOfSource(const CheckedRow& row, int64_t position, const Weights& weights);

// The answer to a row with nothing to translate: its prefix, as in CTranslate2.
RowResult EchoPrefix(const CheckedRow& row);

}  // namespace ct2triton
