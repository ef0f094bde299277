// SPDX-License-Identifier: Apache-2.0
#include "engine/search/draft.h"

#include <algorithm>

namespace ct2triton {

int32_t Draft::Next(size_t ahead) const {
  return followed_ && next_ + ahead < outputs_.size() ? outputs_[next_ + ahead] : -1;
}

void Draft::Follow(const Outputs& answer) noexcept {
  if (Next(0) == answer.back()) {
    ++next_;
    return;
  }
  followed_ = false;
  if (answer.size() < kRejoining || next_ >= outputs_.size()) return;
  const auto left = outputs_.begin() + static_cast<std::ptrdiff_t>(next_);
  const auto found = std::search(left, outputs_.end(), answer.end() - kRejoining, answer.end());
  if (found == outputs_.end()) return;
  next_ = static_cast<size_t>(found - outputs_.begin()) + kRejoining;
  followed_ = true;
}

}  // namespace ct2triton
