// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <tuple>
#include <vector>

#include "config/parameters.h"
#include "engine/loop/step_times.h"

// Each function adds one part of ct2_triton._core.
namespace ct2triton {

struct Hypothesis;
struct LoopCounters;

void BindConfig(pybind11::module_& module);
void BindMetrics(pybind11::module_& module);
void BindModelFile(pybind11::module_& module);
void BindProducts(pybind11::module_& module);
void BindQuality(pybind11::module_& module);
void BindQueue(pybind11::module_& module);
void BindRows(pybind11::module_& module);
void BindSegmenter(pybind11::module_& module);
void BindGpu(pybind11::module_& module);
void BindLoop(pybind11::module_& module);
void BindLoopWork(pybind11::module_& module);
void BindTeam(pybind11::module_& module);
void BindText(pybind11::module_& module);
void BindTranslation(pybind11::module_& module);

// Set parameters from Python values: str, bool, int or float. Parameters that only requests have go
// into `request`; if it is null, they are only checked.
void SetModelParameters(const pybind11::dict& parameters, DecodingOptions* decoding,
                        EngineOptions* engine);
void SetRequestParameters(const pybind11::dict& parameters, const EngineOptions& engine,
                          DecodingOptions* decoding, RequestOptions* request = nullptr);

// Number of loops, and the step time of the first and of each further row in one of them.
using Times = std::vector<std::tuple<size_t, double, double>>;
StepTimes ToTimes(const Times& given);

// The counters of a decode loop as a dict.
pybind11::dict Describe(const LoopCounters& counters);
pybind11::dict Describe(const Hypothesis& hypothesis);

}  // namespace ct2triton
