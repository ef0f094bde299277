// SPDX-License-Identifier: Apache-2.0
//
// Activations of one number, with exactly the operations of CTranslate2's AVX2 kernels, so that
// results are bit-identical. Written for loops that a compiler vectorizes: no branch, no call.
// Every kernel file compiles its own copy (hence the anonymous namespace), without contraction:
// only Fma is a fused multiply-add.
//
// Sources of the formulas: tanh is Eigen's rational approximation; erf is Abramowitz and Stegun
// 7.1.26.
#pragma once

#include <cstdint>
#include <cstring>

#include "engine/compute/cpu/exponential.h"
#include "engine/compute/cpu/products/kernel.h"

namespace ct2triton::products {
namespace {

inline float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// A float as a register of one lane.
struct OneLane {
  using Register = float;

  static float Set(float value) { return value; }
  static float Add(float a, float b) { return a + b; }
  static float Multiply(float a, float b) { return a * b; }
  static float MultiplyAdd(float a, float b, float c) { return Fma(a, b, c); }
  static float Min(float a, float b) { return a < b ? a : b; }
  static float Max(float a, float b) { return a > b ? a : b; }
  static float Floor(float a) { return __builtin_floorf(a); }
};

inline float PowerOfTwo(float octaves) {
  const int32_t bits = (static_cast<int32_t>(octaves) + 127) * (1 << 23);
  float power;
  std::memcpy(&power, &bits, sizeof bits);
  return power;
}

inline float ExpValue(float x) {
  const auto e = Exp<OneLane>(x);
  return e.fraction * PowerOfTwo(e.octaves);
}

// c + exp(x), contracted.
inline float ExpPlus(float x, float c) {
  const auto e = Exp<OneLane>(x);
  return Fma(e.fraction, PowerOfTwo(e.octaves), c);
}

inline float Tanh(float given) {
  constexpr float kLimit = 7.90531110763549805f;
  float x = given < kLimit ? given : kLimit;
  x = x > -kLimit ? x : -kLimit;
  const float x2 = x * x;
  float p = Fma(x2, -2.76076847742355e-16f, 2.00018790482477e-13f);
  p = Fma(x2, p, -8.60467152213735e-11f);
  p = Fma(x2, p, 5.12229709037114e-08f);
  p = Fma(x2, p, 1.48572235717979e-05f);
  p = Fma(x2, p, 6.37261928875436e-04f);
  p = Fma(x2, p, 4.89352455891786e-03f);
  float q = Fma(x2, 1.19825839466702e-06f, 1.18534705686654e-04f);
  q = Fma(x2, q, 2.26843463243900e-03f);
  q = Fma(x2, q, 4.89352518554385e-03f);
  const float ratio = x * p / q;
  return __builtin_fabsf(given) < 0.0004f ? x : ratio;
}

inline float Erf(float x) {
  const float t = 1.0f / Fma(0.3275911f, __builtin_fabsf(x), 1.0f);
  float r = Fma(1.061405429f, t, -1.453152027f);
  r = Fma(r, t, 1.421413741f);
  r = Fma(r, t, -0.284496736f);
  r = Fma(r, t, 0.254829592f);
  const float positive = Fma(-ExpValue(-(x * x)) * t, r, 1.0f);
  return positive * __builtin_copysignf(1.0f, x);
}

template <Activation kActivation>
inline float Activate(float x) {
  switch (kActivation) {
    case Activation::kRelu:
      return x > 0.0f ? x : 0.0f;
    case Activation::kGelu:
      return 0.5f * (x * (1.0f + Erf(0.7071067811865475f * x)));
    case Activation::kGeluTanh:
      return 0.5f * (x * (1.0f + Tanh(0.7978845608028654f * Fma(0.044715f, x * x * x, x))));
    case Activation::kGeluSigmoid:
      return x / ExpPlus(-1.702f * x, 1.0f);
    case Activation::kSwish:
      return x / ExpPlus(-x, 1.0f);
    case Activation::kSigmoid:
      return 1.0f / ExpPlus(-x, 1.0f);
    case Activation::kTanh:
      return Tanh(x);
    case Activation::kNone:
      break;
  }
  return x;
}

}  // namespace
}  // namespace ct2triton::products
