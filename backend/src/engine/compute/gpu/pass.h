// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "engine/compute/gpu/gpu.h"
#include "engine/compute/gpu/weights.h"
#include "gpu/args.h"

namespace ct2triton::gpu {

// Rounds up to whole tiles: of 16 rows, or of 64 for more than 64 rows.
inline int Bucket(size_t rows) {
  const size_t tile = rows > 64 ? 64 : 16;
  return static_cast<int>((rows + tile - 1) / tile * tile);
}

// The state of the rows of a step in a GPU's memory. All rows are padding at first.
struct RowBuffers {
  RowBuffers(Gpu* gpu, size_t rows);
  Rows rows() const { return {token.get(), position.get(), sequence.get(), slot.get()}; }

  Buffer<int> token, position, sequence, slot;
};

// Buffers for intermediate results between the kernels of a pass.
struct Workspace {
  Workspace(Gpu* gpu, const ModelWeights& weights, size_t rows);

  Buffer<float> x[2];
  Buffer<Spread> spread[2];
  Buffer<unsigned char> projected, context, hidden;
};

// Launches the kernels of an encoder or a decoder over some rows, one after the other.
class Pass {
 public:
  // rows: a multiple of a tile, see Bucket().
  Pass(Gpu* gpu, const ModelWeights& weights, const SideWeights& side, Workspace* workspace,
       const RowBuffers& state, int rows);

  // slots: null: the host sets the slots of the rows.
  void Embed(const int* slots, int slots_stride, const int* prompt, const Next* next);
  // Sets the other members of `attention`. to: cache for the rows' keys and values; null: they stay
  // next to the query, where attention reads them.
  void Self(const LayerWeights& layer, AttentionArgs attention, const Cache* to);
  void Source(const LayerWeights& layer, AttentionArgs attention);
  void FeedForward(const LayerWeights& layer);
  // Keys and values of a source for a decoder's layer.
  void Keys(const Matrix& keys, const Cache& to);
  // chosen: rows of the pass, as many as `outputs`, in whole tiles.
  void Logits(const Matrix& projection, const int* chosen, int outputs, float* logits);
  // Numbers per row in the buffer where Self() keeps keys and values.
  int projected_stride() const { return 3 * weights_.heads_width(); }

 private:
  Stream StreamOf(int which) const;
  Norm InputNorm(const Norm& of_layer) const { return side_.pre_norm ? of_layer : pending_; }
  Norm OutputNorm() const { return side_.pre_norm ? side_.output_norm : pending_; }
  ProductArgs Normed(const Matrix& matrix, const Norm& norm) const;
  void Attend(AttentionArgs args, const AttentionWeights& attention, int query_stride);
  void AddTo(const Matrix& matrix, const Buffer<unsigned char>& x, const Norm& norm);
  void Launch(const ProductArgs& args, bool norm, int rows);

  Gpu* const gpu_;
  const ModelWeights& weights_;
  const SideWeights& side_;
  Workspace* const workspace_;
  const RowBuffers& state_;
  const int rows_;
  int now_ = 0;        // index of the buffer that holds the rows
  Norm pending_ = {};  // after a sublayer, in such models: applied when the rows are read
};

}  // namespace ct2triton::gpu
