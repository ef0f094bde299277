// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "engine/loop/trial_truth.h"

namespace ct2triton {

class DeviceModel;

struct BeamTrialReport {
  size_t hypotheses = 0;    // whose scores were compared
  float largest_error = 0;  // of a score, relative to CTranslate2's if that is above 1
};

// Compares a short search of two beams in a loop of its own with CTranslate2's, on the model
// itself: the scores of both hypotheses must agree. This finds errors in how beams share their
// past, which TryDecoder cannot find. It costs one encoding and 4 steps. `exact`: CTranslate2's
// result with float32 weights; null: not used. If given, the scores must agree with these, within
// the tolerance or as well as CTranslate2's own. Throws Error(kUnsupported) if the scores differ by
// more.
BeamTrialReport TryBeams(const DeviceModel& model, const BeamTrialRow& truth,
                         const BeamTrialRow* exact, float tolerance);

}  // namespace ct2triton
