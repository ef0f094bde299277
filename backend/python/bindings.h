// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "config/parameters.h"

// The parts of ct2_triton._core, one function each.
namespace ct2triton {

struct LoopCounters;

void BindConfig(pybind11::module_& module);
void BindMetrics(pybind11::module_& module);
void BindModelFile(pybind11::module_& module);
void BindProducts(pybind11::module_& module);
void BindQuality(pybind11::module_& module);
void BindRows(pybind11::module_& module);
void BindSegmenter(pybind11::module_& module);
void BindGpu(pybind11::module_& module);
void BindLoop(pybind11::module_& module);
void BindLoopWork(pybind11::module_& module);
void BindTeam(pybind11::module_& module);
void BindText(pybind11::module_& module);
void BindTranslation(pybind11::module_& module);

// Sets parameters, whose values are as Python gives them: str, bool, int or float. Those that only
// a request has are read into `request`, or checked only.
void SetModelParameters(const pybind11::dict& parameters, DecodingOptions* decoding,
                        EngineOptions* engine);
void SetRequestParameters(const pybind11::dict& parameters, const EngineOptions& engine,
                          DecodingOptions* decoding, RequestOptions* request = nullptr);

// What a decode loop has done.
pybind11::dict Describe(const LoopCounters& counters);

}  // namespace ct2triton
