// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/search/search_rules.h"

namespace ct2triton {

// The tokens that are expected after a row's forced ones, as outputs of the projection; -1: one
// that cannot be chosen. They are tried while the answer follows them, and again where its last
// tokens stand in the rest of the draft.
class Draft {
 public:
  Draft() = default;
  explicit Draft(Outputs outputs) : outputs_(std::move(outputs)) {}

  // What is expected next, or after so many more; -1: nothing, or what cannot be chosen.
  int32_t Next(size_t ahead) const;
  // `answer`: so far; it has just grown by its last token.
  void Follow(const Outputs& answer) noexcept;

 private:
  static constexpr size_t kRejoining = 2;  // tokens that must be equal

  Outputs outputs_;
  size_t next_ = 0;
  bool followed_ = true;
};

}  // namespace ct2triton
