// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "config/decoding_options.h"

namespace ct2triton {

// Properties that must be equal for rows to share a call: those of which a call has one value, and
// those that would affect other rows' answers. Properties resolved per row are not included.
struct CallKey {
  // Options that a call has one value of; the others have their defaults.
  std::shared_ptr<const DecodingOptions> options;
  size_t list = 0;             // number of the vocabulary list that restricts the candidates
  int64_t source_tokens = 0;   // 0: padding changes no answer
  int64_t limit_tokens = 0;    // 0: rows may have different limits
  bool forced_tokens = false;  // false if they do not affect other rows
  bool alone = false;          // shares with no row
};

bool SameOptions(const CallKey& a, const CallKey& b);

// Whether rows with these keys may share a call.
bool MayShareCall(const CallKey& a, const CallKey& b);

}  // namespace ct2triton
