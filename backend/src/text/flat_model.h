// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "text/piece_list.h"

namespace ct2triton {

// A SentencePiece model in the form that SentencePiece Lite reads: its fields, and beside them what
// makes splitting quick (benchmarks/tokenizers.md). Throws Error, naming no file.
std::string FlatModel(const PieceList& list);

}  // namespace ct2triton
