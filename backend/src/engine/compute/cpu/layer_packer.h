// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/compute/cpu/embeddings.h"
#include "engine/compute/cpu/linear.h"
#include "engine/compute/cpu/products/packed_linear.h"
#include "engine/model/model_file.h"

namespace ct2triton {

// Makes the products of a model, packed straight from its file. Aliases of a variable share one
// packed copy.
class LayerPacker {
 public:
  // type: of the weights, kInt8 or kFloat32, see ResolveComputeType. threads: for packing. Throws
  // Error(kUnsupported) for another type, and what products::DefaultKernel throws. The file must
  // outlive it.
  LayerPacker(const ModelFile& file, ElementType type, size_t threads);
  LayerPacker(const LayerPacker&) = delete;
  LayerPacker& operator=(const LayerPacker&) = delete;

  // Throws Error(kUnsupported) for a layer of another form.
  std::unique_ptr<Linear> Make(const LinearSpec& spec);
  // The embeddings of this scope. If a projection with the same weights was made first, they take
  // no memory of their own.
  Embeddings Table(const std::string& scope);

  size_t bytes() const { return bytes_; }
  // "97 layers packed for avx512vnni, 61 MiB"
  std::string Description() const;

 private:
  using Packed = std::shared_ptr<const products::PackedLinear>;

  using Key = std::pair<const Variable*, const Variable*>;  // weight, and scale if it has one

  Packed Pack(const std::string& scope);
  Key KeyOf(const std::string& scope) const;

  const ModelFile& file_;
  const ElementType type_;
  const size_t threads_;
  const products::Kernel& kernel_;
  products::SharedPages pages_;
  std::map<Key, Packed> tables_;  // whatever the bias
  size_t layers_ = 0;
  size_t bytes_ = 0;
};

}  // namespace ct2triton
