// SPDX-License-Identifier: Apache-2.0
//
// A kernel without the sums of one tile: quantizing a row, the loops over panels and rows, and the
// processing of the sums. The same text is compiled once for each instruction set, with its flags;
// the loops over a panel's outputs become vectors. See lane_math.h on contraction and namespaces.
#pragma once

#include <cstdint>
#include <cstring>

#include "engine/compute/cpu/products/kernel.h"
#include "engine/compute/cpu/products/lane_math.h"

namespace ct2triton::products {
namespace {

// Tile is a class with
//   kOutputs, kGroup  the panel's layout
//   kRows             rows of one tile at most: as many sums as fit the registers
//   Weight, Sum       int8_t and int32_t (ByteTile), or float (FloatTile)
//   Code              uint8_t (shifted by 128) or int16_t (not shifted) for bytes, or float
//   kFetches          whether Sums can fetch weights that are needed soon
//   template <int kCount, bool kFetch>
//   static void Sums(const Code* rows, int64_t stride, const Weight* weights, const int32_t* start,
//                    int64_t groups, const std::byte* soon, Sum* sums)
// where Sums writes [kCount][kOutputs] sums. Those of bytes are exact. Those of floats are added
// from the first input to the last, whatever kCount is: so a row's bits do not depend on other
// rows. With kFetch it brings `groups` cache lines from `soon` on into the second cache.
struct ByteTile {
  using Weight = int8_t;
  using Sum = int32_t;
};

struct FloatTile {
  using Code = float;
  using Weight = float;
  using Sum = float;
  static constexpr int kGroup = 1;
};

template <typename Tile>
class KernelOf {
 public:
  static float Quantize(const float* row, int64_t inputs, int64_t padded, Rounding rounding,
                        std::byte* codes);
  static void Write(const PanelView& panels, const RowView& rows, const WriteTail& tail);
  static void Choose(const PanelView& panels, const RowView& rows, ChoiceState* states);

 private:
  using Code = typename Tile::Code;
  using Sum = typename Tile::Sum;
  static constexpr int kOutputs = Tile::kOutputs;
};

inline float LargestMagnitude(const float* row, int64_t inputs) {
  // Bits of non-negative floats compare like the floats, and an integer maximum can be vectorized.
  int32_t largest = 0;
  for (int64_t i = 0; i < inputs; ++i) {
    int32_t bits;
    std::memcpy(&bits, row + i, sizeof bits);
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  float magnitude;
  std::memcpy(&magnitude, &largest, sizeof magnitude);
  return magnitude;
}

// To nearest, ties to even, for |x| < 2^22; larger ones, infinities and NaN stay far from any code.
inline float RoundToEven(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: its neighbours are 1 apart
  return (x + kShift) - kShift;
}

template <Rounding kRounding, typename Code>
inline void QuantizeTo(const float* row, int64_t inputs, float scale, Code* codes) {
  constexpr int kShift = sizeof(Code) == 1 ? 0 : 128;
  // CTranslate2's result for an infinite scale or a NaN.
  constexpr int kNoByte = kRounding == Rounding::kSigned ? 128 : 0;
  for (int64_t i = 0; i < inputs; ++i) {
    float code;
    if (kRounding == Rounding::kOnce) {
      code = RoundToEven(Fma(row[i], scale, 128.0f));
    } else if (kRounding == Rounding::kTwice) {
      code = RoundToEven(row[i] * scale + 128.0f);
    } else {
      code = RoundToEven(row[i] * scale) + 128.0f;
    }
    const bool fits = code >= 0.0f && code < 256.0f;
    const int byte = static_cast<int>(fits ? code : static_cast<float>(kNoByte));
    codes[i] = static_cast<Code>(byte - kShift);
  }
}

// Returns 1 / scale.
template <typename Code>
inline float QuantizeRow(const float* row, int64_t inputs, Rounding rounding, Code* codes) {
  const float magnitude = LargestMagnitude(row, inputs);
  const float scale = magnitude != 0.0f ? 127.0f / magnitude : 1.0f;
  switch (rounding) {
    case Rounding::kOnce:
      QuantizeTo<Rounding::kOnce>(row, inputs, scale, codes);
      break;
    case Rounding::kTwice:
      QuantizeTo<Rounding::kTwice>(row, inputs, scale, codes);
      break;
    case Rounding::kSigned:
      QuantizeTo<Rounding::kSigned>(row, inputs, scale, codes);
      break;
  }
  return 1.0f / scale;
}

inline float QuantizeRow(const float* row, int64_t inputs, Rounding /*rounding*/, float* codes) {
  std::memcpy(codes, row, static_cast<size_t>(inputs) * sizeof *codes);
  return 1.0f;
}

template <typename Tile>
float KernelOf<Tile>::Quantize(const float* row, int64_t inputs, int64_t padded, Rounding rounding,
                               std::byte* bytes) {
  auto* codes = reinterpret_cast<Code*>(bytes);
  std::memset(codes + inputs, 0, static_cast<size_t>(padded - inputs) * sizeof(Code));
  return QuantizeRow(row, inputs, rounding, codes);
}

// The weights that the sums of a tile read: one panel, and optionally the next one for prefetching.
template <typename Weight>
struct TileWeights {
  const Weight* panel;
  const int32_t* start;
  int64_t groups;
  const std::byte* soon;  // null: none
};

constexpr int64_t kCacheLine = 64;

// With several tiles, a panel's weights come from the cache for all but the first one. Meanwhile
// each of the first tiles prefetches a part of the next panel, so that memory is never idle. A
// single tile does not: it has no time, and the processor prefetches its weights itself.
template <typename Tile>
inline TileWeights<typename Tile::Weight> WeightsOf(const PanelView& panels, int64_t column,
                                                    int64_t tile, int64_t tiles) {
  using Weight = typename Tile::Weight;
  constexpr int64_t kGroupBytes = Tile::kGroup * sizeof(Weight);
  const int64_t column_bytes = panels.groups * kGroupBytes;
  const std::byte* panel = panels.weights + column * column_bytes;
  TileWeights<Weight> weights{reinterpret_cast<const Weight*>(panel), panels.start + column,
                              panels.groups, nullptr};
  constexpr int64_t kParts = Tile::kOutputs * kGroupBytes / kCacheLine;
  const bool is_last = column + Tile::kOutputs >= panels.outputs;
  if (Tile::kFetches && tiles > 1 && tile < kParts && !is_last) {
    weights.soon = panel + Tile::kOutputs * column_bytes + tile * panels.groups * kCacheLine;
  }
  return weights;
}

// Tile::Sums for a count of rows that is known at run time, 1 to Tile::kRows.
template <typename Tile, int kCount>
inline void TileSums(int64_t count, const typename Tile::Code* rows, int64_t stride,
                     const TileWeights<typename Tile::Weight>& from, typename Tile::Sum* sums) {
  if constexpr (kCount > 0) {
    if (count != kCount) {
      TileSums<Tile, kCount - 1>(count, rows, stride, from, sums);
    } else if (from.soon == nullptr) {
      Tile::template Sums<kCount, false>(rows, stride, from.panel, from.start, from.groups,
                                         from.soon, sums);
    } else {
      Tile::template Sums<kCount, Tile::kFetches>(rows, stride, from.panel, from.start, from.groups,
                                                  from.soon, sums);
    }
  }
}

// One row of one panel, once its sums are known.
struct Place {
  int64_t row;
  int64_t column;   // of the panel's first output
  int64_t columns;  // of them that are not padding
};

// Calls finish(place, sums) for each row of each panel. A panel's weights stay in the cache for all
// rows, which form tiles of nearly equal size. A kernel may have an overload for its own tile.
template <typename Tile, typename Finish>
void EachTile(Tile /*tile*/, const PanelView& panels, const RowView& rows, const Finish& finish) {
  using Code = typename Tile::Code;
  constexpr int kOutputs = Tile::kOutputs;
  alignas(64) typename Tile::Sum sums[Tile::kRows][kOutputs];
  const int64_t stride = rows.stride / static_cast<int64_t>(sizeof(Code));
  const int64_t tiles = (rows.count + Tile::kRows - 1) / Tile::kRows;
  for (int64_t column = panels.begin; column < panels.end; column += kOutputs) {
    const int64_t left = panels.outputs - column;
    const int64_t columns = left < kOutputs ? left : kOutputs;
    int64_t first = 0;
    for (int64_t tile = tiles; tile > 0; --tile) {
      const int64_t count = (rows.count - first + tile - 1) / tile;
      const auto* codes = reinterpret_cast<const Code*>(rows.codes + first * rows.stride);
      const auto weights = WeightsOf<Tile>(panels, column, tiles - tile, tiles);
      TileSums<Tile, Tile::kRows>(count, codes, stride, weights, sums[0]);
      for (int64_t i = 0; i < count; ++i) finish(Place{first + i, column, columns}, sums[i]);
      first += count;
    }
  }
}

// In CTranslate2's order: times the inverse of the row's scale, by the weight's scale, plus bias.
template <int kOutputs>
inline void Rescale(const PanelView& panels, int64_t column, const int32_t* sums, float inverse,
                    float* values) {
  const float* scale = panels.scale + column;
  const float* bias = panels.bias + column;
  for (int i = 0; i < kOutputs; ++i) {
    values[i] = static_cast<float>(sums[i]) * inverse / scale[i] + bias[i];
  }
}

template <int kOutputs>
inline void Rescale(const PanelView& panels, int64_t column, const float* sums, float /*inverse*/,
                    float* values) {
  const float* bias = panels.bias + column;
  for (int i = 0; i < kOutputs; ++i) values[i] = sums[i] + bias[i];
}

template <int kOutputs, Activation kActivation>
inline void ActivateAll(float* values) {
  for (int i = 0; i < kOutputs; ++i) values[i] = Activate<kActivation>(values[i]);
}

template <int kOutputs>
inline void ActivateAll(Activation activation, float* values) {
  switch (activation) {
    case Activation::kRelu:
      return ActivateAll<kOutputs, Activation::kRelu>(values);
    case Activation::kGeluTanh:
      return ActivateAll<kOutputs, Activation::kGeluTanh>(values);
    case Activation::kSwish:
      return ActivateAll<kOutputs, Activation::kSwish>(values);
    case Activation::kGelu:
      return ActivateAll<kOutputs, Activation::kGelu>(values);
    case Activation::kGeluSigmoid:
      return ActivateAll<kOutputs, Activation::kGeluSigmoid>(values);
    case Activation::kTanh:
      return ActivateAll<kOutputs, Activation::kTanh>(values);
    case Activation::kSigmoid:
      return ActivateAll<kOutputs, Activation::kSigmoid>(values);
    case Activation::kNone:
      return;
  }
}

// Copies whole panels with a constant size, which compiles to a few moves.
template <int kOutputs>
inline void Copy(const float* from, int64_t columns, float* to) {
  if (columns == kOutputs) {
    std::memcpy(to, from, kOutputs * sizeof(float));
  } else {
    std::memcpy(to, from, static_cast<size_t>(columns) * sizeof(float));
  }
}

template <typename Tile>
void KernelOf<Tile>::Write(const PanelView& panels, const RowView& rows, const WriteTail& tail) {
  EachTile(Tile(), panels, rows, [&](const Place& place, const Sum* sums) {
    alignas(64) float values[kOutputs];
    Rescale<kOutputs>(panels, place.column, sums, rows.inverse[place.row], values);
    ActivateAll<kOutputs>(tail.activation, values);
    const int64_t at = place.row * panels.outputs + place.column;
    if (tail.residual != nullptr) {
      alignas(64) float residual[kOutputs] = {};
      Copy<kOutputs>(tail.residual + at, place.columns, residual);
      for (int i = 0; i < kOutputs; ++i) values[i] = residual[i] + values[i];
    }
    Copy<kOutputs>(values, place.columns, tail.out + at);
  });
}

// Not infinity, so that differences are never NaN; and no logit is below it.
template <int kOutputs>
inline void Forbid(int64_t column, float* values, ChoiceState* state) {
  const int64_t* next = state->forbidden;
  while (next != state->forbidden_end && *next < column + kOutputs) {
    values[*next++ - column] = -__FLT_MAX__;
  }
  state->forbidden = next;
}

template <int kOutputs>
inline void KeepBest(const float* values, int32_t panel, ChoiceState* state) {
  for (int i = 0; i < kOutputs; ++i) {
    const bool better = values[i] > state->best[i];
    state->best[i] = better ? values[i] : state->best[i];
    state->panel[i] = better ? panel : state->panel[i];
  }
}

// Moves worse ones back; the last one may be dropped.
inline void Insert(const RankedOutput& added, ChoiceState* state) {
  RankedOutput* top = state->top;
  int32_t place = state->found < state->wanted ? state->found++ : state->wanted - 1;
  for (; place > 0 && top[place - 1].logit < added.logit; --place) top[place] = top[place - 1];
  top[place] = added;
  if (state->found == state->wanted) state->least = top[state->wanted - 1].logit;
}

// Few panels have an output that is good enough, so a panel's outputs are first tested together.
template <int kOutputs>
inline void KeepTop(const float* values, int64_t column, ChoiceState* state) {
  int32_t any = 0;
  for (int i = 0; i < kOutputs; ++i) any |= values[i] > state->least ? 1 : 0;
  if (any == 0) return;
  for (int i = 0; i < kOutputs; ++i) {
    if (values[i] > state->least) Insert({values[i], static_cast<int32_t>(column) + i}, state);
  }
}

// Call before KeepBest. One of the two exponents, relative to the larger maximum, is 0.
template <int kOutputs>
inline void KeepSum(const float* values, ChoiceState* state) {
  for (int i = 0; i < kOutputs; ++i) {
    const float difference = values[i] - state->best[i];
    const float smaller = ExpValue(-__builtin_fabsf(difference));
    const float sum = state->sum[i];
    state->sum[i] = difference > 0.0f ? Fma(sum, smaller, 1.0f) : sum + smaller;
  }
}

template <typename Tile>
void KernelOf<Tile>::Choose(const PanelView& panels, const RowView& rows, ChoiceState* states) {
  static_assert(kOutputs <= ChoiceState::kLanes);
  EachTile(Tile(), panels, rows, [&](const Place& place, const Sum* sums) {
    ChoiceState* state = states + place.row;
    alignas(64) float values[kOutputs];
    Rescale<kOutputs>(panels, place.column, sums, rows.inverse[place.row], values);
    if (state->logits != nullptr) {
      Copy<kOutputs>(values, place.columns, state->logits + place.column);
    }
    Forbid<kOutputs>(place.column, values, state);
    if (state->keep_sum) KeepSum<kOutputs>(values, state);
    if (state->wanted > 0) KeepTop<kOutputs>(values, place.column, state);
    KeepBest<kOutputs>(values, static_cast<int32_t>(place.column / kOutputs), state);
  });
}

template <typename Tile>
constexpr Kernel MakeKernel(const char* name, WeightType weights = WeightType::kInt8) {
  return {name,
          weights,
          sizeof(typename Tile::Weight),
          Tile::kOutputs,
          Tile::kGroup,
          sizeof(typename Tile::Code),
          sizeof(typename Tile::Code) == 1,
          &KernelOf<Tile>::Quantize,
          &KernelOf<Tile>::Write,
          &KernelOf<Tile>::Choose};
}

}  // namespace
}  // namespace ct2triton::products
