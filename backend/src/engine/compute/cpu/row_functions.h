// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace ct2triton {

// Operations on one row of floats between products, with CTranslate2's order of roundings on
// processors with AVX2, which it also uses on newer ones. So results are bit-identical to
// CTranslate2, whatever instructions the functions are compiled for.
struct RowFunctions {
  // (x - mean) / deviation * gamma + beta. All have `size` numbers; `out` may be `in`.
  void (*layer_norm)(const float* in, const float* gamma, const float* beta, float epsilon,
                     size_t size, float* out);
  // x / (root of the mean square) * gamma.
  void (*rms_norm)(const float* in, const float* gamma, float epsilon, size_t size, float* out);
  // Converts logits to log-probabilities.
  void (*log_softmax)(float* values, size_t count);
};

extern const RowFunctions kPlainRowFunctions;
extern const RowFunctions kAvx2RowFunctions;

}  // namespace ct2triton
