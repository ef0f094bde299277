// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "engine/loop/loop_engine.h"
#include "engine/loop/step_time.h"
#include "engine/usable_cores.h"

namespace ct2triton {

class Weights;

// Measures StepTimes with steps of one row and of a tile of rows, in processor time, so that other
// work of the machine counts little. `new_loop`: of the model of these weights, with memory of its
// own. Takes about 30 ms for each number of loops, or some ten steps where they are longer.
StepTimes MeasureSteps(const Weights& weights, const Cores& cores,
                       const std::function<std::unique_ptr<LoopEngine>()>& new_loop) noexcept;

}  // namespace ct2triton
