// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "engine/loop/trial_truth.h"

namespace ct2triton {

class DeviceModel;

struct BeamTrialReport {
  size_t hypotheses = 0;    // whose scores were compared
  float largest_error = 0;  // of a score, as a share of CTranslate2's where that is above 1
};

// Holds a short search of two beams in a loop of its own against CTranslate2's, on the model
// itself: the scores of both hypotheses are to agree. What agrees in TryDecoder can differ here in
// how beams share their past. It costs one encoding and 4 steps.
// `exact`: what CTranslate2 finds with float32 weights; null where that is not asked. Then the
// scores are to agree with those, within the tolerance or as CTranslate2's own do.
// Throws Error(kUnsupported) where the scores differ by more.
BeamTrialReport TryBeams(const DeviceModel& model, const BeamTrialRow& truth,
                         const BeamTrialRow* exact, float tolerance);

}  // namespace ct2triton
