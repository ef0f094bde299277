// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ct2triton::products {

// The smallest multiple of `unit` that is at least `count`.
template <typename Count>
constexpr Count RoundUp(Count count, Count unit) {
  return (count + unit - 1) / unit * unit;
}

}  // namespace ct2triton::products
