// SPDX-License-Identifier: Apache-2.0
//
// The boundary between C++ exceptions and Triton's error objects, in both directions.
#pragma once

#include <string>
#include <utility>

#include "error.h"
#include "triton_c_api.h"

namespace ct2triton {

// Throws what a C call reported, and frees it; nothing if it succeeded. `doing` leads the text.
void ThrowIfError(TRITONSERVER_Error* error, const char* doing);

// The same for calls whose failure cannot be answered: it goes to the log.
void LogIfError(TRITONSERVER_Error* error, const char* doing) noexcept;

// A new object, owned by the caller. Waits for memory while there is none.
TRITONSERVER_Error* ToTritonError(const Error& error) noexcept;

// Runs one entry point. No exception leaves it: Triton would end the process.
template <typename Function>
TRITONSERVER_Error* Guard(Function&& function) noexcept {
  try {
    std::forward<Function>(function)();
    return nullptr;
  } catch (...) {
    return ToTritonError(CurrentError());
  }
}

// Throws Error(kUnsupported) if the server's backend API lacks what we call.
void RequireBackendApi();

}  // namespace ct2triton
