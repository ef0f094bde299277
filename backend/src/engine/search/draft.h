// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/search/search_rules.h"

namespace ct2triton {

// The tokens expected after a row's forced ones, as outputs of the projection; -1: a token that
// cannot be chosen. They are tried while the answer follows the draft, and again once the answer's
// last tokens occur in the rest of the draft.
class Draft {
 public:
  Draft() = default;
  explicit Draft(Outputs outputs) : outputs_(std::move(outputs)) {}

  // Expected token at this offset; -1: none, or one that cannot be chosen.
  int32_t Next(size_t ahead) const;
  // `answer`: the answer so far. Call after each new token.
  void Follow(const Outputs& answer) noexcept;

 private:
  static constexpr size_t kRejoining = 2;  // equal tokens required to rejoin

  Outputs outputs_;
  size_t next_ = 0;
  bool followed_ = true;
};

}  // namespace ct2triton
