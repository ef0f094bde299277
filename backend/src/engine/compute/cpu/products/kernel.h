// SPDX-License-Identifier: Apache-2.0
//
// A kernel: the products of one instruction set with weights of one type, and its data layouts.
// Kernels take plain pointers and do not use CTranslate2; their files may only include what has no
// code for other files (tests/packaging/test_house_rules.py), and the compiler's intrinsics.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/model/activation.h"

namespace ct2triton::products {

enum class WeightType { kInt8, kFloat32 };

// How an input x becomes a byte, with scale = 127 / (largest magnitude of its row). CTranslate2's
// method depends on its compiler, so it is found by comparison. All round to nearest, ties to even.
enum class Rounding {
  kOnce,    // round(fma(x, scale, 128)): multiply and add were contracted; the wheels for x86-64
  kTwice,   // round(x * scale + 128), the product rounded first
  kSigned,  // round(x * scale), where CTranslate2 does not shift its inputs to unsigned bytes
};

// Weights in panels. A panel holds `panel_outputs` outputs; within it, groups of `group` inputs of
// each output are adjacent: [inputs / group][panel_outputs][group]. Outputs are padded to whole
// panels and inputs to whole groups, with zeros.
struct PanelView {
  const std::byte* weights;  // 64-byte aligned
  const int32_t* start;      // [padded outputs]: what sums of bytes begin with: Kernel::shifted
  const float* scale;        // [padded outputs], of bytes
  const float* bias;         // [padded outputs]; -0 if a layer has none: x + -0 is exactly x
  int64_t outputs;           // without padding
  int64_t groups;            // of inputs
  int64_t begin;             // the outputs to compute: from the first of a panel
  int64_t end;               // to the first of another one, or `outputs`
};

// Rows quantized by Kernel::quantize.
struct RowView {
  const std::byte* codes;
  int64_t stride;        // bytes from row to row
  int64_t count;         // rows
  const float* inverse;  // [count]: 1 / scale of each row
};

// Writes out = activation(sums * inverse / scale + bias) + residual, [rows, outputs]. Sums of
// floats are not scaled.
struct WriteTail {
  float* out;
  const float* residual;  // null: none; may be `out` itself
  Activation activation;
};

// An output of a layer, and its logit.
struct RankedOutput {
  float logit;
  int32_t output;
};

// The running choice of one row among a part of the outputs, by lane: a lane is an output's index
// in its panel. Only the best outputs (`top`) are kept from part to part. See SplitChoice.
struct ChoiceState {
  static constexpr int kLanes = 32;  // at least the number of outputs of a panel
  float best[kLanes];                // largest logit so far
  int32_t panel[kLanes];             // the first panel that has it
  float sum[kLanes];                 // of exp(logit - best)
  bool keep_sum;
  float* logits;             // where to write all logits as well, null for nowhere
  const int64_t* forbidden;  // outputs not to choose, ascending, up to:
  const int64_t* forbidden_end;
  RankedOutput* top;  // the best so far, best first; ties: the first output first
  int32_t wanted;     // their largest number; 0: none
  int32_t found;      // so far
  float least;        // a logit must exceed it to be inserted
};

struct Kernel {
  const char* name;
  WeightType weights;
  int weight_bytes;
  int panel_outputs;
  int group;
  int code_bytes;  // of one quantized input; a float stays one
  // Inputs are bytes shifted by 128, so sums must begin with -128 * (sum of an output's weights).
  bool shifted;
  // One row: `inputs` floats to codes, zeros up to `padded` inputs. Returns 1 / scale. For a row
  // with a NaN, the inverse and all results are NaN. For float weights, floats are copied, whatever
  // the rounding.
  float (*quantize)(const float* row, int64_t inputs, int64_t padded, Rounding rounding,
                    std::byte* codes);
  void (*write)(const PanelView& panels, const RowView& rows, const WriteTail& tail);
  // Keeps each row's best output instead of writing its logits. states: [rows].
  void (*choose)(const PanelView& panels, const RowView& rows, ChoiceState* states);
};

extern const Kernel kPlainKernel;
extern const Kernel kAvx2Kernel;
extern const Kernel kAvxVnniKernel;
extern const Kernel kAvx512VnniKernel;
extern const Kernel kAmxKernel;

extern const Kernel kPlainFloatKernel;
extern const Kernel kAvx2FloatKernel;
extern const Kernel kAvx512FloatKernel;

}  // namespace ct2triton::products
