// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

// The parts of ct2_triton._core, one function each.
namespace ct2triton {

void BindConfig(pybind11::module_& module);

}  // namespace ct2triton
