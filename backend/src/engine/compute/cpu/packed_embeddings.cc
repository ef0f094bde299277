// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/packed_embeddings.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/compute/cpu/packed_layers.h"

namespace ct2triton {
namespace {

constexpr const char* kProjection = "decoder/projection";

// Some from the first to the last: each has as many values as a row is wide.
std::vector<int32_t> TrialIds(int64_t count) {
  constexpr int64_t kMost = 256;
  const int64_t ids = std::min(count, kMost);
  std::vector<int32_t> trial;
  for (int64_t i = 0; i < ids; ++i) {
    trial.push_back(static_cast<int32_t>(i * (count - 1) / std::max<int64_t>(ids - 1, 1)));
  }
  return trial;
}

bool SameBits(const TokenEmbeddings& one, const TokenEmbeddings& other,
              const std::vector<int32_t>& ids) {
  std::vector<float> rows(ids.size() * one.size()), expected(rows.size());
  one.Apply(ids, rows.data());
  other.Apply(ids, expected.data());
  return std::memcmp(rows.data(), expected.data(), rows.size() * sizeof(float)) == 0;
}

std::vector<PackedEmbeddings::Scaling> ScalingsOf(const products::PackedLinear& table) {
  using Scaling = PackedEmbeddings::Scaling;
  if (table.kernel().weights == products::WeightType::kFloat32) return {Scaling::kNone};
  return {Scaling::kTimesInverse, Scaling::kDivided};
}

}  // namespace

void PackedEmbeddings::Apply(const std::vector<int32_t>& ids, float* out) const {
  if (scaling_ != Scaling::kNone) return ApplyBytes(ids, out);
  for (const int32_t id : ids) {
    table_->UnpackRow(id, out);
    out += size();
  }
}

void PackedEmbeddings::ApplyBytes(const std::vector<int32_t>& ids, float* out) const {
  thread_local std::vector<int8_t> row;
  row.resize(size());
  for (const int32_t id : ids) {
    table_->UnpackRow(id, row.data());
    const float scale = table_->scale(id);
    if (scaling_ == Scaling::kDivided) {
      for (const int8_t code : row) *out++ = static_cast<float>(code) / scale;
    } else {
      const float inverse = 1.0F / scale;
      for (const int8_t code : row) *out++ = static_cast<float>(code) * inverse;
    }
  }
}

std::unique_ptr<TokenEmbeddings> PackedIfTied(std::unique_ptr<TokenEmbeddings> library,
                                              const ctranslate2::models::Model& model,
                                              const std::string& scope, const Linear& projection) {
  const auto same_variable = [&](const char* name) {
    return model.get_variable_if_exists(scope + name) ==
           model.get_variable_if_exists(std::string(kProjection) + name);
  };
  const auto* packed = dynamic_cast<const PackedLayer*>(&projection);
  if (packed == nullptr || !same_variable("/weight") || !same_variable("/weight_scale")) {
    return library;
  }
  const auto ids = TrialIds(packed->layer()->outputs());
  for (const auto scaling : ScalingsOf(*packed->layer())) {
    auto embeddings = std::make_unique<PackedEmbeddings>(packed->layer(), scaling);
    if (SameBits(*embeddings, *library, ids)) return embeddings;
  }
  return library;
}

}  // namespace ct2triton
