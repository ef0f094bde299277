// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/loop/beam_trial.h"
#include "engine/loop/trial_truth.h"

namespace ct2triton {

class DeviceModel;

// What a trial found.
struct TrialReport {
  size_t tokens = 0;        // tokens whose logits were compared
  float largest_error = 0;  // root mean square difference of a token's logits from
                            // CTranslate2's, as a share of the standard deviation of those
  float tolerance = 0;      // what it may be
  // Above 0: errors are differences from CTranslate2 with float32 weights, and this is the largest
  // of CTranslate2's own with the model's weights.
  float library_error = 0;
  BeamTrialReport beams;
  uint64_t ns = 0;  // duration of the trial, including CTranslate2's part
};

// Compares a decoder with CTranslate2 on the model itself, before any row is decoded with it. A few
// rows of different lengths, with and without forced tokens, join at different steps and follow
// CTranslate2's own answers. The logits of every token must agree: with float32 weights within
// 0.001, and the most probable token must be the same, or as probable within that; with narrower
// weights, where last bits can change roundings, within 0.05. The projection of the vocabulary map
// must agree with the whole one. Then a search of two beams is tried (beam_trial.h).
//
// CTranslate2's int8 products are inexact on some processors: without VNNI, oneDNN adds pairs of
// products in 16 bits. If int8 weights do not agree, the loop is therefore compared with
// CTranslate2 at float32: each token must be within 0.05 of that, or about as close as CTranslate2
// at int8.
//
// `truth`: of the same model. Uses as many threads as the calling thread may (thread_scope.h), and
// costs 3 encodings and 6 steps of the loop, plus those of the beams. Throws Error(kUnsupported),
// with the numbers, if they do not agree.
TrialReport TryDecoder(const DeviceModel& model, const TrialTruth& truth);

}  // namespace ct2triton
