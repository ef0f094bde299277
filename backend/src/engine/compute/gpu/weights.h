// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/compute/gpu/gpu.h"
#include "engine/model/model_file.h"
#include "engine/model/stack_shape.h"
#include "gpu/args.h"
#include "rows/alignment_heads.h"

namespace ct2triton::gpu {

struct AttentionWeights {
  Norm norm;
  Matrix in;    // query, key and value; of a source: the query
  Matrix keys;  // of a source: key and value
  Matrix out;
  float scale = 0;
};

struct LayerWeights {
  AttentionWeights self, source;  // an encoder has no source
  Norm feed_forward_norm;
  Matrix inner, gate, outer;
  bool gated = false;
};

// Number types used for computing, independent of the model's file.
struct ComputeTypes {
  Number activations = kFloat16;  // kFloat32, kFloat16 or kBfloat16
  bool int8_weights = false;      // false: weights have the activations' type
};

// Largest numbers of positions of a source and of a sequence.
struct MostPositions {
  size_t source, target;
};

// An encoder or a decoder.
struct SideWeights {
  Matrix embedding;
  float embedding_scale = 1;
  Norm embedding_norm = {}, output_norm = {};  // without gamma: none
  const float* positions = nullptr;            // [most positions, width]
  const float* bias = nullptr;                 // [heads, 2 * bias_last + 1], see AttentionArgs
  int bias_last = 0;
  int heads = 0;
  bool pre_norm = true;
  bool starts_from_zero = false;
  Activation activation = kRelu;
  std::vector<LayerWeights> layers;
};

// The weights of a translation model in a GPU's memory, in the form that the kernels read. Throws
// Error(kUnsupported) for models that they do not support.
class ModelWeights {
 public:
  // epsilon: of the norms, from the model's config.json; none: CTranslate2's.
  ModelWeights(Gpu* gpu, const ModelFile& file, const ComputeTypes& types,
               const MostPositions& most, std::optional<float> epsilon);

  const SideWeights& encoder() const { return encoder_; }
  const SideWeights& decoder() const { return decoder_; }
  const Matrix& projection() const { return projection_; }
  int outputs() const { return outputs_; }  // of the projection, without padding
  float output_scale() const { return output_scale_; }
  int width() const { return projection_.k; }
  int heads_width() const { return decoder_.layers[0].self.out.k; }
  int inner_width() const;                                        // the largest of all layers
  const AlignmentHeads& alignment() const { return alignment_; }  // of the model
  size_t bytes() const;
  // "f32", "f16", "bf16" or "i8": the products' kernels, and "f32", "f16" or "bf16": attention's.
  std::string WeightName() const;
  std::string ActivationName() const;
  size_t activation_bytes() const { return type_ == kFloat32 ? 4 : 2; }
  // Row tiles of a block of the products for many rows.
  int many_tiles() const { return type_ == kFloat32 ? kManyTilesFloat32 : kManyTiles; }

  // The projection to only these outputs. The matrix lives as long as this object.
  Matrix Select(const std::vector<int>& outputs);

 private:
  // A vector of `count` numbers, in float32.
  const float* Floats(const std::string& name, int64_t count);
  Norm ReadNorm(const std::string& scope);
  Matrix ReadMatrix(const std::string& scope);
  struct Packed {
    const void* tiles = nullptr;
    const float* scale = nullptr;  // factor of int8 weights
  };
  const Packed& Pack(const std::string& scope);
  AttentionWeights ReadAttention(const std::string& scope, bool to_source, int heads);
  LayerWeights ReadLayer(const std::string& scope, const StackShape& shape);
  SideWeights ReadSide(const StackShape& shape);
  void ReadPositions(const std::string& side, SideWeights* to);
  const float* Keep(const std::vector<float>& values);

  Gpu* const gpu_;
  const ModelFile& file_;  // only while this is made
  const Number type_;
  const bool int8_;
  const MostPositions most_positions_;
  const std::optional<float> epsilon_;
  std::vector<Buffer<float>> floats_;
  std::vector<Buffer<unsigned char>> tiles_;
  // Packed weights by offset in the file, because several names may share them.
  std::map<uint64_t, Packed> packed_;
  std::map<uint64_t, const float*> uploaded_;
  SideWeights encoder_, decoder_;
  Matrix projection_ = {};
  int outputs_ = 0;
  float output_scale_ = 1;
  AlignmentHeads alignment_;
};

}  // namespace ct2triton::gpu
