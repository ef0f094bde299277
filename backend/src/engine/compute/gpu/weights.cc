// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/compute/cpu/positions.h"
#include "engine/model/weight_rows.h"
#include "error.h"

namespace ct2triton::gpu {
namespace {

constexpr unsigned kPackThreads = 128;

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kUnsupported, "the GPU's kernels cannot run this model: " + what);
}

constexpr size_t kPackedAtOnce = 16 << 20;  // bytes of the host

size_t BytesOf(Number number) { return number == kFloat32 ? 4 : number == kInt8 ? 1 : 2; }

int Padded(int64_t n) { return static_cast<int>((n + 15) / 16 * 16); }

}  // namespace

ModelWeights::ModelWeights(Gpu* gpu, const ModelFile& file, const ComputeTypes& types,
                           const MostPositions& most, std::optional<float> epsilon)
    : gpu_(gpu),
      file_(file),
      type_(types.activations),
      int8_(types.int8_weights),
      most_positions_(most),
      epsilon_(epsilon) {
  if (type_ == kBfloat16 && gpu->capability() < 80) {
    Refuse("bfloat16 needs a GPU of compute capability 8.0 or later; float16 runs on this one");
  }
  if (int8_ && type_ != kFloat16) Refuse("int8 weights need compute_type int8_float16");
  const DecoderShape decoder = ReadDecoder(file);
  encoder_ = ReadSide(ReadEncoder(file));
  decoder_ = ReadSide(decoder);
  decoder_.starts_from_zero = decoder.start_from_zero_embedding;
  projection_ = ReadMatrix("decoder/projection");
  outputs_ = static_cast<int>(decoder.vocabulary);
  output_scale_ = decoder.output_scale;
  alignment_ = decoder.alignment;
  gpu_->Wait();
}

int ModelWeights::inner_width() const {
  int most = 0;
  for (const SideWeights* side : {&encoder_, &decoder_}) {
    for (const LayerWeights& layer : side->layers) most = std::max(most, layer.inner.n);
  }
  return most;
}

size_t ModelWeights::bytes() const {
  size_t bytes = 0;
  for (const auto& buffer : floats_) bytes += buffer.bytes();
  for (const auto& buffer : tiles_) bytes += buffer.bytes();
  return bytes;
}

std::string ModelWeights::WeightName() const { return int8_ ? "i8" : ActivationName(); }

std::string ModelWeights::ActivationName() const {
  return type_ == kFloat32 ? "f32" : type_ == kFloat16 ? "f16" : "bf16";
}

const float* ModelWeights::Keep(const std::vector<float>& values) {
  floats_.emplace_back(*gpu_, values);
  gpu_->Wait();
  return floats_.back().get();
}

const float* ModelWeights::Floats(const std::string& name, int64_t count) {
  const Variable& variable = file_.Get(name);
  if (variable.elements() != count) {
    Refuse(name + " has " + std::to_string(variable.elements()) + " numbers, not " +
           std::to_string(count));
  }
  const float*& there = uploaded_[variable.offset];
  if (there != nullptr) return there;
  std::vector<float> values = file_.Floats(name);
  // Padded, because a bias is read for whole tiles.
  values.resize(static_cast<size_t>(Padded(count)));
  return there = Keep(values);
}

Norm ModelWeights::ReadNorm(const std::string& scope) {
  Norm norm = {};
  const int64_t width = file_.Get(scope + "/gamma").elements();
  norm.gamma = Floats(scope + "/gamma", width);
  if (file_.Has(scope + "/beta")) norm.beta = Floats(scope + "/beta", width);
  norm.epsilon = epsilon_.value_or(norm.beta != nullptr ? 1e-5F : 1e-6F);
  return norm;
}

// Reads some rows at a time, so that the host needs little memory for them.
const ModelWeights::Packed& ModelWeights::Pack(const std::string& scope) {
  Packed& there = packed_[file_.Get(scope + "/weight").offset];
  if (there.tiles != nullptr) return there;
  const WeightRows rows(file_, scope, int8_ ? ElementType::kInt8 : ElementType::kFloat32);
  PackArgs args = {};
  args.from_kind = int8_ ? kInt8 : kFloat32;
  args.to_kind = int8_ ? kInt8 : type_;
  args.k = static_cast<int>(rows.inputs());
  const auto row_bytes = static_cast<size_t>(args.k) * BytesOf(static_cast<Number>(args.to_kind));
  Buffer<unsigned char> tiles(*gpu_, static_cast<size_t>(Padded(rows.outputs())) * row_bytes);
  std::vector<float> scale;
  const int64_t step = Padded(static_cast<int64_t>(kPackedAtOnce / sizeof(float)) / args.k + 1);
  WeightRows::Block block;
  Buffer<std::byte> plain;  // the first block is the largest
  for (int64_t first = 0; first < rows.outputs(); first += step) {
    args.n = static_cast<int>(std::min(step, rows.outputs() - first));
    rows.Read(first, args.n, &block);
    if (plain.count() < block.rows.size()) plain = {*gpu_, block.rows.size()};
    plain.Put(0, block.rows.data(), block.rows.size());
    args.from = plain.get();
    args.to = tiles.get() + static_cast<size_t>(first) * row_bytes;
    gpu_->Launch("pack", static_cast<unsigned>(Padded(args.n)), 1, kPackThreads, 0, args);
    gpu_->Wait();  // before `plain` is used again
    for (int64_t i = 0; int8_ && i < args.n; ++i) {
      scale.push_back(1 / block.scales[static_cast<size_t>(i)]);
    }
  }
  scale.resize(static_cast<size_t>(Padded(rows.outputs())));
  tiles_.push_back(std::move(tiles));
  there = {tiles_.back().get(), int8_ ? Keep(scale) : nullptr};
  return there;
}

Matrix ModelWeights::ReadMatrix(const std::string& scope) {
  const std::string name = scope + "/weight";
  const Variable& weight = file_.Get(name);
  if (weight.shape.size() != 2 || weight.columns() % 16 != 0) {
    Refuse(name + " has not a multiple of 16 inputs");
  }
  Matrix matrix = {};
  const Packed& packed = Pack(scope);
  matrix.weight = packed.tiles;
  matrix.scale = packed.scale;
  if (file_.Has(scope + "/bias")) matrix.bias = Floats(scope + "/bias", weight.rows());
  matrix.n = Padded(weight.rows());
  matrix.k = static_cast<int>(weight.columns());
  return matrix;
}

AttentionWeights ModelWeights::ReadAttention(const std::string& scope, bool to_source, int heads) {
  AttentionWeights attention;
  attention.norm = ReadNorm(scope + "/layer_norm");
  attention.in = ReadMatrix(scope + "/linear_0");
  if (to_source) attention.keys = ReadMatrix(scope + "/linear_1");
  attention.out = ReadMatrix(scope + (to_source ? "/linear_2" : "/linear_1"));
  const int width = attention.out.k, dim = width / heads;
  const bool fits = width % heads == 0 && dim % 8 == 0 && dim <= 256 &&
                    attention.in.n == width * (to_source ? 1 : 3) &&
                    (!to_source || attention.keys.n == 2 * width);
  if (!fits) {
    Refuse("the sizes of " + scope + " do not fit " + std::to_string(heads) +
           " heads, each a multiple of 8 wide and at most 256");
  }
  // CTranslate2's default depends on the width of the output.
  const auto share = static_cast<float>(attention.out.n / heads);
  attention.scale =
      static_cast<float>(file_.Attribute(scope + "/queries_scale", 1 / std::sqrt(share)));
  return attention;
}

LayerWeights ModelWeights::ReadLayer(const std::string& scope, const StackShape& shape) {
  const int heads = static_cast<int>(shape.heads);
  LayerWeights layer;
  layer.self = ReadAttention(scope + "self_attention", /*to_source=*/false, heads);
  if (shape.side == "decoder") {
    layer.source = ReadAttention(scope + "attention", /*to_source=*/true, heads);
  }
  layer.feed_forward_norm = ReadNorm(scope + "ffn/layer_norm");
  layer.inner = ReadMatrix(scope + "ffn/linear_0");
  layer.gated = shape.gated;
  if (layer.gated) layer.gate = ReadMatrix(scope + "ffn/linear_0_noact");
  layer.outer = ReadMatrix(scope + "ffn/linear_1");
  return layer;
}

void ModelWeights::ReadPositions(const std::string& side, SideWeights* to) {
  const std::string name = side + '/' + "position_encodings/encodings";
  const size_t most = side == "encoder" ? most_positions_.source : most_positions_.target;
  if (const Variable* stored = file_.Find(name)) {
    if (static_cast<size_t>(stored->rows()) < most) {
      Refuse(name + " has " + std::to_string(stored->rows()) + " positions, and " +
             std::to_string(most) + " are wanted");
    }
    to->positions = Floats(name, stored->elements());
    return;
  }
  const auto width = static_cast<size_t>(to->embedding.k);
  std::vector<float> encodings(most * width);
  for (size_t i = 0; i < most; ++i) {
    SinusoidalPosition(i, width, encodings.data() + i * width);
  }
  to->positions = Keep(encodings);
}

SideWeights ModelWeights::ReadSide(const StackShape& shape) {
  SideWeights weights;
  weights.heads = static_cast<int>(shape.heads);
  const int activation = static_cast<int>(shape.activation);
  if (activation > kSigmoid) Refuse(shape.side + "/activation is " + std::to_string(activation));
  weights.activation = static_cast<Activation>(activation);
  weights.pre_norm = shape.pre_norm;
  weights.embedding = ReadMatrix(shape.embeddings);
  weights.embedding_scale = shape.embedding_scale;
  if (shape.embedding_norm) weights.embedding_norm = ReadNorm(shape.side + "/layernorm_embedding");
  if (shape.output_norm) weights.output_norm = ReadNorm(shape.side + "/layer_norm");
  if (shape.output_norm && !shape.pre_norm) {
    Refuse(shape.side + "/layer_norm follows layers that end with a norm");
  }
  for (size_t i = 0; i < shape.layers; ++i) {
    weights.layers.push_back(ReadLayer(shape.LayerScope(i), shape));
  }
  if (shape.bias_max_distance == 0) {
    ReadPositions(shape.side, &weights);
    return weights;
  }
  weights.bias = Keep(BiasByDistance(file_.Floats(shape.BiasName()), shape.heads,
                                     shape.bias_max_distance, shape.side == "encoder"));
  weights.bias_last = static_cast<int>(shape.bias_max_distance);
  return weights;
}

Matrix ModelWeights::Select(const std::vector<int>& outputs) {
  const Buffer<int> chosen(*gpu_, outputs);
  Matrix matrix = projection_;
  matrix.n = Padded(static_cast<int64_t>(outputs.size()));
  const auto padded = static_cast<unsigned>(matrix.n);
  const auto kind = int8_ ? kInt8 : type_;
  PackArgs args = {};
  args.from = projection_.weight;
  args.rows = chosen.get();
  args.from_tiles = 1;
  args.from_kind = args.to_kind = kind;
  args.n = static_cast<int>(outputs.size());
  args.k = matrix.k;
  tiles_.emplace_back(*gpu_,
                      static_cast<size_t>(padded) * static_cast<size_t>(matrix.k) * BytesOf(kind));
  matrix.weight = args.to = tiles_.back().get();
  gpu_->Launch("pack", padded, 1, kPackThreads, 0, args);
  for (const float** vector : {&matrix.scale, &matrix.bias}) {
    if (*vector == nullptr) continue;
    floats_.emplace_back(*gpu_, padded);
    const GatherArgs gather{*vector, chosen.get(), floats_.back().get(), args.n, matrix.n};
    gpu_->Launch("gather", (padded + kPackThreads - 1) / kPackThreads, 1, kPackThreads, 0, gather);
    *vector = floats_.back().get();
  }
  gpu_->Wait();
  return matrix;
}

}  // namespace ct2triton::gpu
