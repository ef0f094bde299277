// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "config/decoding_options.h"
#include "rows/alignment_heads.h"
#include "rows/call_key.h"
#include "rows/row.h"

namespace ct2triton {

class SearchOptions;  // the engine's: options resolved against a vocabulary

// A row that was checked against a model and its options, and cannot be refused any more.
struct CheckedRow {
  Ids source;
  Ids prefix;                // at most as long as the answer may be
  Ids draft;                 // expected after the prefix; saves decode steps; changes no answer
                             // without draft_bias
  size_t forced_ids = 0;     // of the prefix, without the decoder's start token
  int64_t limit_tokens = 0;  // its own decoding limit; the prefix counts
  bool empty = false;        // nothing to translate: never sent to the engine
  bool cut = false;          // the source was cut to max_input_length
  bool mapped = false;       // the candidates are those of the vocabulary map
  std::shared_ptr<const SearchOptions> search;
  std::shared_ptr<const DecodingOptions> options;  // options of `search`
  // Chosen by the operator, for decode loops; null: the model's own, or no alignments.
  std::shared_ptr<const AlignmentHeads> alignment;

  // For planning calls:
  CallKey key;
  int64_t copies = 1;         // sequences that the search keeps at the same time
  int64_t search_tokens = 0;  // tokens that the search keeps in memory at most
  bool may_overrun = false;   // may run beyond its limit beside rows of larger limits
  bool repeatable = true;     // equal rows have equal answers: one run serves them all
  bool only_in_loop = false;  // it has options that calls lack: a seed, a bias, attention heads
  bool in_loop = false;       // runs in a decode loop, not in a call
  // Of keys and values in a loop: of its own tokens, and of its source, which equal sources share.
  size_t cache_bytes = 0;
  size_t source_cache_bytes = 0;
};

// Whether one run can answer both. Both must be repeatable.
bool EqualRows(const CheckedRow& a, const CheckedRow& b);

}  // namespace ct2triton
