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

// What a step takes by itself, of the times of some: a server that loads a model may be busy, and
// other work makes steps longer, never shorter. `times_ns`: at least one.
double UndisturbedStep_ns(std::vector<double> times_ns);

// Measures StepTimes with steps of one row and of a tile of rows, twice, in processor time, so that
// other work of the machine counts little. `new_loop`: of the model of these weights, with memory
// of its own. Takes about 60 ms for each number of loops, or some 16 steps where they are longer.
StepTimes MeasureSteps(const Weights& weights, const Cores& cores,
                       const std::function<std::unique_ptr<LoopEngine>()>& new_loop) noexcept;

}  // namespace ct2triton
