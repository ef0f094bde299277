// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "text/piece_list.h"

namespace ct2triton {

// A SentencePiece model in the form that SentencePiece Lite reads: its fields, and tables that make
// splitting fast (benchmarks/tokenizers.md). The text of an Error has no file name.
std::string FlatModel(const PieceList& list);

}  // namespace ct2triton
