// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ct2triton {

// A key that depends on every bit of both.
uint64_t MixedKey(uint64_t key, uint64_t value);

// Random numbers that a key determines, the same on every machine (SplitMix64).
class RandomStream {
 public:
  explicit RandomStream(uint64_t key) : state_(key) {}
  // Uniform in (0, 1].
  double Next();

 private:
  uint64_t state_;
};

}  // namespace ct2triton
