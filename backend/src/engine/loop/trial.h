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
  size_t tokens = 0;        // whose logits were compared
  float largest_error = 0;  // of the logits of a token: their root mean square difference from
                            // CTranslate2's, as a share of the standard deviation of those
  float tolerance = 0;      // what it may be
  // Greater than 0: the errors are differences from CTranslate2 with float32 weights, and this is
  // the largest one of CTranslate2 itself with the model's.
  float library_error = 0;
  BeamTrialReport beams;
  uint64_t ns = 0;  // that the trial took, CTranslate2's part included
};

// Holds a decoder against CTranslate2 on the model itself, before any row is decoded with it: some
// rows of different lengths, with and without forced tokens, that join at different steps, follow
// CTranslate2's own answers. The logits of every token must agree: with float32 weights within
// 0.001, and the most probable token must be the same, or as probable within that; with narrower
// weights, where last bits tip over roundings, within 0.05. The projection of the vocabulary map
// must agree with the whole one. Then a search of two beams is tried (beam_trial.h).
//
// CTranslate2's int8 products are inexact on some processors: without VNNI, oneDNN adds pairs of
// products in 16 bits. Int8 weights that do not agree are therefore held against CTranslate2 with
// float32 weights: each token must be within 0.05 of that, or about as near as CTranslate2 with
// int8 is.
//
// `truth`: of the same model. It computes with as many threads as the calling thread may use
// (thread_scope.h), and costs 3 encodings and 6 steps of the loop, and those of the beams.
// Throws Error(kUnsupported), with the numbers, where they do not agree.
TrialReport TryDecoder(const DeviceModel& model, const TrialTruth& truth);

}  // namespace ct2triton
