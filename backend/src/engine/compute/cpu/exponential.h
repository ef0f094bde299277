// SPDX-License-Identifier: Apache-2.0
//
// The exponential function of all kernels: Cephes' expf, in the order of avx_mathfun, with the
// multiply-adds that GCC contracts in CTranslate2. Written in terms of `Lanes`, a register of
// floats and its operations, and compiled for each instruction set (hence the anonymous namespace).
#pragma once

#ifndef KERNEL_TARGET
#define KERNEL_TARGET
#endif

namespace ct2triton {
namespace {

// exp(x) = fraction * 2 ^ octaves. CTranslate2's compiler contracts the product with an addition
// that follows, so callers multiply.
template <typename Register>
struct Exponential {
  Register fraction;
  Register octaves;  // whole numbers
};

template <typename Lanes>
KERNEL_TARGET inline Exponential<typename Lanes::Register> Exp(typename Lanes::Register x) {
  x = Lanes::Min(x, Lanes::Set(88.3762626647949f));
  x = Lanes::Max(x, Lanes::Set(-88.3762626647949f));
  const auto octaves =
      Lanes::Floor(Lanes::MultiplyAdd(x, Lanes::Set(1.44269504088896341f), Lanes::Set(0.5f)));
  // x - octaves * ln 2, with ln 2 in two parts, so that the product with the first is exact.
  x = Lanes::MultiplyAdd(octaves, Lanes::Set(-0.693359375f), x);
  x = Lanes::MultiplyAdd(octaves, Lanes::Set(2.12194440e-4f), x);
  auto y = Lanes::Set(1.9875691500e-4f);
  y = Lanes::MultiplyAdd(y, x, Lanes::Set(1.3981999507e-3f));
  y = Lanes::MultiplyAdd(y, x, Lanes::Set(8.3334519073e-3f));
  y = Lanes::MultiplyAdd(y, x, Lanes::Set(4.1665795894e-2f));
  y = Lanes::MultiplyAdd(y, x, Lanes::Set(1.6666665459e-1f));
  y = Lanes::MultiplyAdd(y, x, Lanes::Set(5.0000001201e-1f));
  y = Lanes::MultiplyAdd(y, Lanes::Multiply(x, x), x);
  return {Lanes::Add(y, Lanes::Set(1.0f)), octaves};
}

}  // namespace
}  // namespace ct2triton
