// SPDX-License-Identifier: Apache-2.0
//
// Our own declarations of the layers of CTranslate2 that the decode loop drives by itself. They
// stand beside ctranslate2_api.h, and rest on less: no member is read, no virtual function called,
// nothing derived. The library constructs a layer in a buffer of ours that is larger than the
// layer; engine/compute/library_gpu/library_layers.cc proves that it is, and that every symbol is
// there, before the first use. Everything is weak: a library without these symbols loads, and the
// loop is not used with it.
//
// Measured sizes, the same in 4.6.3, 4.7.2, 4.8.1 and 4.8.5: Dense 433 bytes, LayerNorm 32,
// Embeddings 56, SoftMax 17.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ctranslate2_api.h"

namespace ctranslate2 {
namespace ops {

enum class ActivationType : int { ReLU, GELUTanh, Swish, GELU, GELUSigmoid, Tanh, Sigmoid };

class SoftMax {
 public:
  __attribute__((weak)) explicit SoftMax(bool log);
  SoftMax(const SoftMax&) = delete;
  __attribute__((weak)) ~SoftMax();
  // Over the last dimension; `lengths` may be null, `y` may be `x`.
  __attribute__((weak)) void operator()(const StorageView& x, const StorageView* lengths,
                                        StorageView& y) const;

 private:
  alignas(16) unsigned char opaque_[512];
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
  __attribute__((weak)) DataType output_type() const;
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

class LayerNorm {
 public:
  __attribute__((weak)) LayerNorm(const models::Model& model, const std::string& scope);
  LayerNorm(const LayerNorm&) = delete;
  __attribute__((weak)) ~LayerNorm();
  __attribute__((weak)) void operator()(const StorageView& input, StorageView& output) const;

 private:
  alignas(16) unsigned char opaque_[512];
};

class Embeddings {
 public:
  __attribute__((weak)) Embeddings(const models::Model& model, const std::string& scope);
  Embeddings(const Embeddings&) = delete;
  __attribute__((weak)) ~Embeddings();
  __attribute__((weak)) void operator()(const StorageView& ids, StorageView& output) const;

 private:
  alignas(16) unsigned char opaque_[512];
};

}  // namespace layers

namespace models {

// What as_sequence_to_sequence() gives for a Transformer. Handle only.
class EncoderDecoderReplica : public SequenceToSequenceReplica {
 public:
  // ids: [source features][rows][tokens]. Gives [rows, longest row, d_model] and the rows' lengths.
  __attribute__((weak)) void encode(const std::vector<std::vector<std::vector<size_t>>>& ids,
                                    StorageView& memory, StorageView& memory_lengths);
};

}  // namespace models
}  // namespace ctranslate2
