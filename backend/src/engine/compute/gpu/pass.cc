// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/pass.h"

#include <algorithm>
#include <vector>

namespace ct2triton::gpu {
namespace {

constexpr int kManyOutputs = 16384;  // a block of the projection makes several tiles then
constexpr int kTilesOfBlock = 8;

int Lanes(int dim) {
  int lanes = 1;
  while (lanes * 8 < dim) lanes *= 2;
  return lanes;
}

}  // namespace

RowBuffers::RowBuffers(Gpu* gpu, size_t rows)
    : token(*gpu, rows),
      position(*gpu, std::vector<int>(rows, -1)),
      sequence(*gpu, rows),
      slot(*gpu, std::vector<int>(rows, -1)) {
  gpu->Wait();
}

Workspace::Workspace(Gpu* gpu, const ModelWeights& weights, size_t rows) {
  const auto width = static_cast<size_t>(weights.width());
  for (int i = 0; i < 2; ++i) {
    x[i] = {*gpu, rows * width};
    spread[i] = {*gpu, rows * width / 16};
  }
  const size_t bytes = rows * weights.activation_bytes();
  const auto heads_width = static_cast<size_t>(weights.heads_width());
  projected = {*gpu, bytes * 3 * heads_width};
  context = {*gpu, bytes * heads_width};
  hidden = {*gpu, bytes * static_cast<size_t>(weights.inner_width())};
}

Pass::Pass(Gpu* gpu, const ModelWeights& weights, const SideWeights& side, Workspace* workspace,
           const RowBuffers& state, int rows)
    : gpu_(gpu),
      weights_(weights),
      side_(side),
      workspace_(workspace),
      state_(state),
      rows_(rows) {}

Stream Pass::StreamOf(int which) const {
  return {workspace_->x[which].get(), workspace_->spread[which].get()};
}

void Pass::Launch(const ProductArgs& args, bool norm, int rows) {
  const int many = weights_.many_tiles();
  const int tiles = rows % (16 * many) == 0 ? many : 1;
  const std::string kernel = "product_" + weights_.WeightName() + (norm ? "_norm" : "_plain") +
                             (tiles == 1 ? "_one" : "_many");
  const int columns = args.matrix.n / 16;
  const int of_block = args.matrix.n >= kManyOutputs ? kTilesOfBlock : 1;
  gpu_->Launch(kernel, static_cast<unsigned>((columns + of_block - 1) / of_block),
               static_cast<unsigned>(rows / (16 * tiles)), 256,
               ProductSharedBytes(weights_.activation_bytes() == 4, tiles), args);
}

ProductArgs Pass::Normed(const Matrix& matrix, const Norm& norm) const {
  ProductArgs args = {};
  args.matrix = matrix;
  args.norm = norm;
  args.in = StreamOf(now_);
  args.activation = kNoActivation;
  args.scale = 1;
  return args;
}

void Pass::Embed(const int* slots, int slots_stride, const int* prompt, const Next* next) {
  EmbedArgs args = {};
  args.embedding = side_.embedding;
  args.norm = side_.embedding_norm;
  args.rows = state_.rows();
  args.position = side_.positions;
  args.slots = slots;
  args.slots_stride = slots_stride;
  args.prompt = side_.starts_from_zero ? prompt : nullptr;
  args.next = next;
  args.out = StreamOf(now_);
  args.scale = side_.embedding_scale;
  gpu_->Launch("embed_" + weights_.WeightName(), static_cast<unsigned>(rows_), 1, 256, 0, args);
}

void Pass::Attend(AttentionArgs args, const AttentionWeights& attention, int query_stride) {
  args.rows = state_.rows();
  args.query = workspace_->projected.get();
  args.out = workspace_->context.get();
  args.query_stride = query_stride;
  args.heads = side_.heads;
  args.dim = attention.out.k / side_.heads;
  args.lanes = Lanes(args.dim);
  args.scale = attention.scale;
  const int tokens = std::max(args.most_tokens, 1);
  gpu_->Launch("attention_" + weights_.ActivationName(), static_cast<unsigned>(args.heads),
               static_cast<unsigned>(rows_), 128, AttentionSharedBytes(tokens), args);
}

// rows += x * matrix^T.
void Pass::AddTo(const Matrix& matrix, const Buffer<unsigned char>& x, const Norm& norm) {
  ProductArgs args = Normed(matrix, pending_);
  args.x = x.get();
  args.norm_residual = side_.pre_norm ? 0 : 1;
  args.sum = StreamOf(1 - now_);
  args.result = kAdd;
  Launch(args, /*norm=*/false, rows_);
  now_ = 1 - now_;
  if (!side_.pre_norm) pending_ = norm;
}

void Pass::Self(const LayerWeights& layer, AttentionArgs attention, const Cache* to) {
  ProductArgs args = Normed(layer.self.in, InputNorm(layer.self.norm));
  args.out = workspace_->projected.get();
  args.split = weights_.heads_width();
  if (to != nullptr) {
    args.cache = *to;
    args.slot = state_.slot.get();
    args.result = kCache;
  } else {
    args.result = kStore;
  }
  Launch(args, /*norm=*/true, rows_);
  attention.bias = side_.bias;
  attention.bias_last = side_.bias_last;
  Attend(attention, layer.self, to != nullptr ? args.split : projected_stride());
  AddTo(layer.self.out, workspace_->context, layer.self.norm);
}

void Pass::Source(const LayerWeights& layer, AttentionArgs attention) {
  ProductArgs args = Normed(layer.source.in, InputNorm(layer.source.norm));
  args.out = workspace_->projected.get();
  args.result = kStore;
  Launch(args, /*norm=*/true, rows_);
  Attend(attention, layer.source, weights_.heads_width());
  AddTo(layer.source.out, workspace_->context, layer.source.norm);
}

void Pass::FeedForward(const LayerWeights& layer) {
  const Norm norm = InputNorm(layer.feed_forward_norm);
  ProductArgs args = Normed(layer.gated ? layer.gate : layer.inner, norm);
  args.out = workspace_->hidden.get();
  args.result = kStore;
  if (layer.gated) {
    Launch(args, /*norm=*/true, rows_);
    args.matrix = layer.inner;
    args.multiply = 1;
  }
  args.activation = side_.activation;
  Launch(args, /*norm=*/true, rows_);
  AddTo(layer.outer, workspace_->hidden, layer.feed_forward_norm);
}

void Pass::Keys(const Matrix& keys, const Cache& to) {
  ProductArgs args = Normed(keys, OutputNorm());
  args.cache = to;
  args.slot = state_.slot.get();
  args.result = kCache;
  Launch(args, /*norm=*/true, rows_);
}

void Pass::Logits(const Matrix& projection, const int* chosen, int outputs, float* logits) {
  ProductArgs args = Normed(projection, OutputNorm());
  args.rows = chosen;
  args.sum.x = logits;
  args.scale = weights_.output_scale();
  args.result = kLogits;
  Launch(args, /*norm=*/true, outputs);
}

}  // namespace ct2triton::gpu
