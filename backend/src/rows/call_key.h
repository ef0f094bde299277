// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "config/decoding_options.h"

namespace ct2triton {

// What must be equal for rows to share a call: what a call has one value of, and what changes a
// row's answer beside others. What is resolved per row is not in it.
struct CallKey {
  // Options that a call has one value of; the others have their defaults.
  std::shared_ptr<const DecodingOptions> options;
  size_t list = 0;             // number of the vocabulary list that restricts the candidates
  int64_t source_tokens = 0;   // 0: padding changes no answer
  int64_t limit_tokens = 0;    // 0: each row may have a limit of its own
  bool forced_tokens = false;  // stays false where they change nothing for the neighbours
  bool alone = false;          // shares with no row
};

bool SameOptions(const CallKey& a, const CallKey& b);

// Whether rows with these keys may share a call.
bool MayShareCall(const CallKey& a, const CallKey& b);

}  // namespace ct2triton
