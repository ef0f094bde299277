// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/loop/loop_engine.h"
#include "engine/loop/step_time.h"
#include "engine/usable_cores.h"

namespace ct2triton {

class Weights;

// Time of an undisturbed step, estimated from the times of some: a server that loads a model may be
// busy, and other work only makes steps longer. `times_ns`: at least one.
double UndisturbedStep_ns(std::vector<double> times_ns);

// Makes a loop; all share encodings.
using NewLoop = std::function<std::unique_ptr<LoopEngine>()>;

// Measures StepTimes with steps of one row and of a tile of rows, in processor time and, unless
// they are long, twice, so that other work of the machine has little effect. Takes about 60 ms per
// number of loops, or about 8 steps if that is longer, and the encodings of a tile's sources; two
// seconds or more where other work of this process does not end; the least disturbed measurement
// then counts.
StepTimes MeasureSteps(const Weights& weights, const Cores& cores,
                       const NewLoop& new_loop) noexcept;

}  // namespace ct2triton
