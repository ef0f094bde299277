// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/compute/cpu/layers.h"
#include "engine/compute/cpu/products/packed_linear.h"

namespace ct2triton {

// Embeddings that are looked up in the packed weights of a projection, where a model has one table
// for both. With the same bits as the library's.
class PackedEmbeddings : public TokenEmbeddings {
 public:
  // How the library makes a float of a byte and the scale of its row: which depends on its version
  // and its compiler. kNone: the table has floats.
  enum class Scaling { kDivided, kTimesInverse, kNone };

  PackedEmbeddings(std::shared_ptr<const products::PackedLinear> table, Scaling scaling)
      : table_(std::move(table)), scaling_(scaling) {}
  size_t size() const override { return static_cast<size_t>(table_->inputs()); }
  void Apply(const std::vector<int32_t>& ids, float* out) const override;
  std::shared_ptr<const products::PackedLinear> packed() const override { return table_; }

 private:
  void ApplyBytes(const std::vector<int32_t>& ids, float* out) const;

  const std::shared_ptr<const products::PackedLinear> table_;
  const Scaling scaling_;
};

// Those in the packed weights of the decoder's projection, where that has the table of `library`
// and a trial gives its bits; else `library`. `scope`: of the embeddings.
std::unique_ptr<TokenEmbeddings> PackedIfTied(std::unique_ptr<TokenEmbeddings> library,
                                              const ctranslate2::models::Model& model,
                                              const std::string& scope, const Linear& projection);

}  // namespace ct2triton
