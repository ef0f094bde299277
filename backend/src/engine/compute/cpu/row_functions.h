// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace ct2triton {

// What is done with one row of floats between products: in the order of roundings that CTranslate2
// has on processors with AVX2, which it uses on newer ones too. So a row has its bits, whatever
// instructions the functions are compiled for.
struct RowFunctions {
  // (x - mean) / deviation * gamma + beta. All have `size` numbers; `out` may be `in`.
  void (*layer_norm)(const float* in, const float* gamma, const float* beta, float epsilon,
                     size_t size, float* out);
  // x / (root of the mean square) * gamma.
  void (*rms_norm)(const float* in, const float* gamma, float epsilon, size_t size, float* out);
  // Makes log-probabilities of logits.
  void (*log_softmax)(float* values, size_t count);
};

extern const RowFunctions kPlainRowFunctions;
extern const RowFunctions kAvx2RowFunctions;

}  // namespace ct2triton
