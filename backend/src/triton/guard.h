// SPDX-License-Identifier: Apache-2.0
//
// The boundary between C++ exceptions and Triton's error objects, in both directions.
#pragma once

#include <memory>
#include <utility>

#include "error.h"
#include "triton_c_api.h"

namespace ct2triton {

struct DeleteError {
  void operator()(TRITONSERVER_Error* error) const noexcept { TRITONSERVER_ErrorDelete(error); }
};
using OwnedError = std::unique_ptr<TRITONSERVER_Error, DeleteError>;

// Throws the error that a C call returned as an Error, and frees it. Does nothing if it is null.
// `doing` begins the text.
void ThrowIfError(TRITONSERVER_Error* error, const char* doing);

// Writes the exception that is being handled into the log. Call it inside a catch block only.
void LogCurrentError() noexcept;

// Calls a Triton function whose failure can only be logged. Also logs exceptions, which Triton
// throws when memory is exhausted.
template <typename Call>
void LogIfError(const char* doing, Call&& call) noexcept {
  try {
    ThrowIfError(std::forward<Call>(call)(), doing);
  } catch (...) {
    LogCurrentError();
  }
}

// A new object, owned by the caller. Waits while memory is exhausted, because without an object
// Triton would treat the failure as a success, and the client would wait forever.
TRITONSERVER_Error* ToTritonError(const Error& error) noexcept;

// Runs one entry point. No exception leaves it, because that would end the process.
template <typename Function>
TRITONSERVER_Error* Guard(Function&& function) noexcept {
  try {
    std::forward<Function>(function)();
    return nullptr;
  } catch (...) {
    return ToTritonError(CurrentError());
  }
}

// Throws Error(kUnsupported) if the server's backend API is older than the functions that we call.
void RequireBackendApi();

}  // namespace ct2triton
