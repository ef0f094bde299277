// SPDX-License-Identifier: Apache-2.0
//
// For any processor.
#include <cmath>
#include <cstddef>

#include "engine/compute/cpu/row_attention_body.h"
#include "engine/compute/cpu/row_kernel.h"
#include "engine/compute/cpu/row_kernel_body.h"

namespace ct2triton {
namespace {

// Loops that a compiler vectorizes with the architecture's baseline instructions.
struct PlainLanes {
  static constexpr size_t kWidth = 4;
  static constexpr bool kManyRegisters = false;
  struct Register {
    float lane[kWidth];
  };

  template <typename Action>
  static Register Each(const Action& action) {
    Register result;
    for (size_t i = 0; i < kWidth; ++i) result.lane[i] = action(i);
    return result;
  }
  static Register Set(float value) {
    return Each([&](size_t) { return value; });
  }
  static Register Load(const float* from) {
    return Each([&](size_t i) { return from[i]; });
  }
  static Register LoadPart(const float* from, size_t count) {
    return Each([&](size_t i) { return i < count ? from[i] : 0; });
  }
  static void Store(float* to, const Register& a) {
    for (size_t i = 0; i < kWidth; ++i) to[i] = a.lane[i];
  }
  static Register Add(const Register& a, const Register& b) {
    return Each([&](size_t i) { return a.lane[i] + b.lane[i]; });
  }
  static Register Multiply(const Register& a, const Register& b) {
    return Each([&](size_t i) { return a.lane[i] * b.lane[i]; });
  }
  static Register MultiplyAdd(const Register& a, const Register& b, const Register& c) {
    return Each([&](size_t i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
  }
  static Register Max(const Register& a, const Register& b) {
    return Each([&](size_t i) { return a.lane[i] < b.lane[i] ? b.lane[i] : a.lane[i]; });
  }
  static Register Min(const Register& a, const Register& b) {
    return Each([&](size_t i) { return b.lane[i] < a.lane[i] ? b.lane[i] : a.lane[i]; });
  }
  static Register Floor(const Register& a) {
    return Each([&](size_t i) { return std::floor(a.lane[i]); });
  }
  static Register TimesPowerOfTwo(const Register& a, const Register& power) {
    return Each([&](size_t i) { return std::ldexp(a.lane[i], static_cast<int>(power.lane[i])); });
  }
  static float Sum(const Register& a) { return (a.lane[0] + a.lane[2]) + (a.lane[1] + a.lane[3]); }
  static void FourSums(const Register* a, float* out) {
    for (size_t i = 0; i < 4; ++i) out[i] = Sum(a[i]);
  }
  static bool AnyEqual(const Register& a, const Register& b) {
    bool equal = false;
    for (size_t i = 0; i < kWidth; ++i) equal |= a.lane[i] == b.lane[i];
    return equal;
  }
};

}  // namespace

const RowKernel kPlainRowKernel = {"plain", &Attend<PlainLanes>, &AttendRow<PlainLanes>,
                                   &FirstMaximum<PlainLanes>, &kPlainRowFunctions};

}  // namespace ct2triton
