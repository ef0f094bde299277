// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/embeddings.h"

#include <vector>

namespace ct2triton {

void Embeddings::Get(int32_t id, float* out) const {
  if (table_->kernel().weights == products::WeightType::kFloat32) return table_->UnpackRow(id, out);
  thread_local std::vector<int8_t> codes;
  codes.resize(static_cast<size_t>(table_->inputs()));
  table_->UnpackRow(id, codes.data());
  const float inverse = 1.0F / table_->scale(id);
  for (const int8_t code : codes) *out++ = static_cast<float>(code) * inverse;
}

}  // namespace ct2triton
