// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ct2triton {

// Of a feed-forward layer. CTranslate2's names and order (ops/activation.h), and kNone.
enum class Activation { kRelu, kGeluTanh, kSwish, kGelu, kGeluSigmoid, kTanh, kSigmoid, kNone };

}  // namespace ct2triton
