// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "rows/row.h"

namespace ct2triton {

class Search;

// One row that has been checked against a model and its options, and can no longer be refused.
struct CheckedRow {
  Ids source;
  Ids prefix;
  int64_t limit_tokens = 0;  // its own decoding limit; the prefix counts
  bool empty = false;        // nothing to translate: never sent to the engine
  bool cut = false;          // the source was cut to max_input_length
  bool mapped = false;       // the candidates are those of the vocabulary map
  std::shared_ptr<const Search> search;
};

}  // namespace ct2triton
