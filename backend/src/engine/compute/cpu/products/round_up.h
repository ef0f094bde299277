// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ct2triton::products {

// The next multiple of a unit: `count` itself where it is one.
template <typename Count>
constexpr Count RoundUp(Count count, Count unit) {
  return (count + unit - 1) / unit * unit;
}

}  // namespace ct2triton::products
