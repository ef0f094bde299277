// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include "bindings.h"
#include "error.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

const char* CodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInternal:
      return "internal";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kUnsupported:
    case ErrorCode::kNoKernels:
      return "unsupported";
    case ErrorCode::kCancelled:
      return "cancelled";
  }
  return "internal";
}

// ct2_triton._core.Error: a RuntimeError whose attribute `code` is ErrorCode's name in lower case.
void BindError(py::module_& module) {
  static PyObject* type = nullptr;
  type = PyErr_NewExceptionWithDoc("ct2_triton._core.Error",
                                   "A failure of the compiled core; `code` says of what kind.",
                                   PyExc_RuntimeError, nullptr);
  if (type == nullptr) throw py::error_already_set();
  module.add_object("Error", py::reinterpret_borrow<py::object>(type));
  py::register_local_exception_translator([](std::exception_ptr current) {
    try {
      if (current) std::rethrow_exception(current);
    } catch (const Error& error) {
      py::object instance = py::reinterpret_borrow<py::object>(type)(error.what());
      instance.attr("code") = CodeName(error.code());
      PyErr_SetObject(type, instance.ptr());
    }
  });
}

}  // namespace
}  // namespace ct2triton

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ core of the Triton backend, as the backend itself runs it.";
  ct2triton::BindError(module);
  ct2triton::BindConfig(module);
  ct2triton::BindGpu(module);
  ct2triton::BindMetrics(module);
  ct2triton::BindModelFile(module);
  ct2triton::BindProducts(module);
  ct2triton::BindLoop(module);
  ct2triton::BindLoopWork(module);
  ct2triton::BindQuality(module);
  ct2triton::BindQueue(module);
  ct2triton::BindRows(module);
  ct2triton::BindSegmenter(module);
  ct2triton::BindTeam(module);
  ct2triton::BindText(module);
  ct2triton::BindTranslation(module);
}
