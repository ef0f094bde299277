// SPDX-License-Identifier: Apache-2.0
//
// Our own declaration of CTranslate2's linear layer, with which tests compare ours. It stands
// beside ctranslate2_api.h, and rests on less: no member is read, no virtual function called,
// nothing derived. The library constructs it in a buffer of ours that is larger than it;
// python/library_linear.cc proves that it is, and that every symbol is there, before the first use.
// Everything is weak: a library without these symbols loads.
//
// Measured, the same in 4.6.3, 4.7.2, 4.8.1 and 4.8.5: Dense has 433 bytes.
#pragma once

#include <string>

#include "ctranslate2_api.h"

namespace ctranslate2 {
namespace ops {

enum class ActivationType : int { ReLU, GELUTanh, Swish, GELU, GELUSigmoid, Tanh, Sigmoid };

// An operation without a state: the library exports no constructor, and reads nothing of it.
class Add {
 public:
  // b: of the shape of a, or a scalar in the memory of the CPU; c may be a.
  __attribute__((weak)) void operator()(const StorageView& a, const StorageView& b,
                                        StorageView& c) const;

 private:
  alignas(16) unsigned char opaque_[64] = {};
};

}  // namespace ops

namespace layers {

// y = x * weight + bias, activated.
class Dense {
 public:
  // Keeps the pointer to the activation; null: none.
  __attribute__((weak)) Dense(const models::Model& model, const std::string& scope,
                              const ops::ActivationType* activation, bool is_layer_out);
  Dense(const Dense&) = delete;
  __attribute__((weak)) ~Dense();
  __attribute__((weak)) long output_size() const;
  // One of the two forms is there: with a residual, which may be null, from 4.7.0; else without.
  __attribute__((weak)) void operator()(const StorageView& input, StorageView& output,
                                        const StorageView* residual) const;
  __attribute__((weak)) void operator()(const StorageView& input, StorageView& output) const;
  // Keeps only these outputs, in this order. Changes the layer: not while others use it.
  __attribute__((weak)) void select_weights(const StorageView* index,
                                            const StorageView* extra_bias);

 private:
  alignas(16) unsigned char opaque_[2048];
};

}  // namespace layers
}  // namespace ctranslate2
