// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/random_stream.h"

namespace ct2triton {
namespace {

constexpr uint64_t kIncrement = 0x9E3779B97F4A7C15;  // 2^64 by the golden ratio, odd

uint64_t Scrambled(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

}  // namespace

uint64_t MixedKey(uint64_t key, uint64_t value) {
  return Scrambled(Scrambled(key + kIncrement) + value);
}

double RandomStream::Next() {
  state_ += kIncrement;
  return static_cast<double>((Scrambled(state_) >> 11) + 1) * 0x1p-53;
}

}  // namespace ct2triton
