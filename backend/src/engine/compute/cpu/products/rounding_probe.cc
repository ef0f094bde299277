// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/products/rounding_probe.h"

#include <cmath>
#include <cstring>
#include <random>

namespace ct2triton::products {
namespace {

constexpr Rounding kRoundings[] = {Rounding::kOnce, Rounding::kTwice, Rounding::kSigned};
constexpr float kLargest = 0.9f;  // its scale is no power of two: those make the roundings equal

// The byte of `input` in a row whose largest magnitude is kLargest.
int ByteOf(float input, Rounding rounding) {
  const float row[] = {kLargest, input};
  int16_t codes[2];
  kPlainKernel.quantize(row, 2, 2, rounding, reinterpret_cast<std::byte*>(codes));
  return codes[1];
}

// Inputs of which two roundings make different bytes: some of those beside the borders of bytes.
std::vector<float> TellingInputs(Rounding one, Rounding other) {
  constexpr int kNeighbours = 4;
  std::vector<float> telling;
  for (int border = -126; border < 126; ++border) {
    float input = (static_cast<float>(border) + 0.5f) * kLargest / 127.0f;
    for (int i = 0; i < kNeighbours; ++i) input = std::nextafter(input, -1.0f);
    for (int i = 0; i <= 2 * kNeighbours; ++i, input = std::nextafter(input, 1.0f)) {
      if (ByteOf(input, one) != ByteOf(input, other)) telling.push_back(input);
    }
  }
  return telling;
}

// Floats are added in another order than the library does. Root mean square difference as a share
// of that of the expected values: 4e-7 was measured, and one wrong value makes it far larger.
constexpr double kFloatTolerance = 1e-5;

bool Near(const std::vector<float>& answer, const float* expected) {
  double squares = 0;
  double differences = 0;
  for (size_t i = 0; i < answer.size(); ++i) {
    const double difference = double{answer[i]} - expected[i];
    squares += double{expected[i]} * expected[i];
    differences += difference * difference;
  }
  return differences <= kFloatTolerance * kFloatTolerance * squares;
}

bool Agree(const PackedLinear& layer, const std::vector<float>& answer, const float* expected) {
  if (layer.kernel().weights == WeightType::kFloat32) return Near(answer, expected);
  return std::memcmp(answer.data(), expected, answer.size() * sizeof(float)) == 0;
}

}  // namespace

std::vector<float> RoundingProbe(int64_t inputs) {
  static const std::vector<float> kTelling[] = {
      TellingInputs(Rounding::kOnce, Rounding::kTwice),
      TellingInputs(Rounding::kOnce, Rounding::kSigned),
      TellingInputs(Rounding::kTwice, Rounding::kSigned),
  };
  const auto count = static_cast<size_t>(inputs);
  std::vector<float> probe(kProbeRows * count, 0.0f);  // the last row stays so
  std::mt19937 random(17);
  for (size_t i = 0; i < count; ++i) {
    const auto& telling = kTelling[i % 3];
    probe[i] = i == 0 ? kLargest : telling[i / 3 % telling.size()];
    for (size_t row = 1; row + 1 < kProbeRows; ++row) {
      const auto bits = static_cast<float>(random() >> 8);  // 24 of them, which a float holds
      probe[row * count + i] = (bits / 8388608.0f - 1.0f) * (row == 1 ? 1.0f : 30.0f);
    }
  }
  return probe;
}

std::optional<Rounding> FindRounding(const PackedLinear& layer, const float* expected,
                                     Activation activation) {
  const std::vector<float> probe = RoundingProbe(layer.inputs());
  std::vector<float> answer(static_cast<size_t>(kProbeRows * layer.outputs()));
  QuantizedRows rows;
  for (const Rounding rounding : kRoundings) {
    rows.Assign(layer.kernel(), rounding, probe.data(), kProbeRows, layer.inputs());
    layer.Apply(rows, answer.data(), activation);
    if (Agree(layer, answer, expected)) return rounding;
  }
  return std::nullopt;
}

}  // namespace ct2triton::products
