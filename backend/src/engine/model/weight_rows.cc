// SPDX-License-Identifier: Apache-2.0
//
// Compiled without contraction of products and sums: see backend/CMakeLists.txt.
#include "engine/model/weight_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "error.h"

namespace ct2triton {
namespace {

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kUnsupported, "the decode loop cannot read model.bin: " + what);
}

const Variable& Matrix(const ModelFile& file, const std::string& name) {
  const Variable& weight = file.Get(name);
  if (weight.shape.size() == 2) return weight;
  Refuse("its variable " + name + " has " + std::to_string(weight.shape.size()) +
         " dimensions, known are 2");
}

// Returns the scale that the floats were multiplied by.
float Quantize(const float* from, int64_t count, std::byte* to) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(from[i]));
  const float scale = most != 0 ? 127.0F / most : 1.0F;
  // Adding it leaves no bits for fractions: numbers are rounded to nearest, ties to even, and the
  // result is in the lowest bits.
  constexpr float kNoFractions = 12582912.0F;
  for (int64_t i = 0; i < count; ++i) {
    const float rounded = from[i] * scale + kNoFractions;
    uint32_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    to[i] = static_cast<std::byte>(bits);
  }
  return scale;
}

void Dequantize(const std::byte* from, float scale, int64_t count, float* to) {
  const float inverse = 1.0F / scale;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<float>(static_cast<int8_t>(from[i])) * inverse;
  }
}

}  // namespace

WeightRows::WeightRows(const ModelFile& file, const std::string& scope, ElementType type)
    : file_(file), weight_(Matrix(file, scope + "/weight")), type_(type) {
  if (IsFloat(weight_.type)) return;
  if (weight_.type != ElementType::kInt8) {
    Refuse("its variable " + scope + "/weight holds " + ElementName(weight_.type) +
           ", known are int8 and floats");
  }
  scales_ = file.Floats(scope + "/weight_scale");
  if (static_cast<int64_t>(scales_.size()) == outputs()) return;
  ThrowInvalid("model.bin is damaged: its variable " + scope + "/weight_scale has " +
               std::to_string(scales_.size()) + " numbers for the " + std::to_string(outputs()) +
               " rows of the weight; convert the model again");
}

void WeightRows::Read(int64_t first, int64_t count, Block* block) const {
  const auto values = static_cast<size_t>(count * inputs());
  const auto size = ElementBytes(type_);
  block->rows.resize(values * size);
  block->scales.resize(static_cast<size_t>(count));
  if (weight_.type == type_) {
    file_.Read(weight_, static_cast<uint64_t>(first * inputs()) * size, block->rows.size(),
               block->rows.data());
    if (!scales_.empty()) std::copy_n(scales_.begin() + first, count, block->scales.begin());
    return;
  }
  if (type_ == ElementType::kFloat32) {
    Widen(first, count, reinterpret_cast<float*>(block->rows.data()), block);
    return;
  }
  block->floats.resize(values);
  Widen(first, count, block->floats.data(), block);
  for (int64_t row = 0; row < count; ++row) {
    block->scales[static_cast<size_t>(row)] =
        Quantize(block->floats.data() + row * inputs(), inputs(), &block->rows[row * inputs()]);
  }
}

// Converts the file's values to float32.
void WeightRows::Widen(int64_t first, int64_t count, float* to, Block* block) const {
  const int64_t values = count * inputs();
  const auto size = ElementBytes(weight_.type);
  block->stored.resize(static_cast<size_t>(values) * size);
  file_.Read(weight_, static_cast<uint64_t>(first * inputs()) * size, block->stored.size(),
             block->stored.data());
  if (IsFloat(weight_.type)) return WidenFloats(weight_.type, block->stored.data(), values, to);
  for (int64_t row = 0; row < count; ++row) {
    Dequantize(block->stored.data() + row * inputs(), scales_[static_cast<size_t>(first + row)],
               inputs(), to + row * inputs());
  }
}

}  // namespace ct2triton
