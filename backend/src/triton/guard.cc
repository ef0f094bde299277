// SPDX-License-Identifier: Apache-2.0
#include "triton/guard.h"

#include <chrono>
#include <new>
#include <thread>

#include "triton/log.h"

namespace ct2triton {
namespace {

ErrorCode FromTriton(TRITONSERVER_Error_Code code) {
  switch (code) {
    case TRITONSERVER_ERROR_NOT_FOUND:
      return ErrorCode::kNotFound;
    case TRITONSERVER_ERROR_INVALID_ARG:
      return ErrorCode::kInvalidArgument;
    case TRITONSERVER_ERROR_UNAVAILABLE:
      return ErrorCode::kUnavailable;
    case TRITONSERVER_ERROR_UNSUPPORTED:
      return ErrorCode::kUnsupported;
    case TRITONSERVER_ERROR_CANCELLED:
      return ErrorCode::kCancelled;
    default:
      return ErrorCode::kInternal;
  }
}

TRITONSERVER_Error_Code ToTriton(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return TRITONSERVER_ERROR_NOT_FOUND;
    case ErrorCode::kInvalidArgument:
      return TRITONSERVER_ERROR_INVALID_ARG;
    case ErrorCode::kUnavailable:
      return TRITONSERVER_ERROR_UNAVAILABLE;
    case ErrorCode::kUnsupported:
    case ErrorCode::kNoKernels:
      return TRITONSERVER_ERROR_UNSUPPORTED;
    case ErrorCode::kCancelled:
      return TRITONSERVER_ERROR_CANCELLED;
    case ErrorCode::kInternal:
      break;
  }
  return TRITONSERVER_ERROR_INTERNAL;
}

}  // namespace

void ThrowIfError(TRITONSERVER_Error* error, const char* doing) {
  if (error == nullptr) return;
  const OwnedError owned(error);
  const std::string text = std::string(doing) + ": " + TRITONSERVER_ErrorMessage(error);
  throw Error(FromTriton(TRITONSERVER_ErrorCode(error)), text);
}

void LogCurrentError() noexcept { LogError(CurrentError().what()); }

TRITONSERVER_Error* ToTritonError(const Error& error) noexcept {
  while (true) {
    try {
      return TRITONSERVER_ErrorNew(ToTriton(error.code()), error.what());
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void RequireBackendApi() {
  uint32_t major = 0;
  uint32_t minor = 0;
  ThrowIfError(TRITONBACKEND_ApiVersion(&major, &minor), "reading the backend API version");
  if (major == kBackendApiMajor && minor >= kBackendApiMinor) return;
  const auto version = [](uint32_t a, uint32_t b) {
    return std::to_string(a) + "." + std::to_string(b);
  };
  throw Error(ErrorCode::kUnsupported,
              "the ctranslate2 backend needs version " +
                  version(kBackendApiMajor, kBackendApiMinor) +
                  " or later of Triton's backend API (release 23.03), this server has " +
                  version(major, minor));
}

}  // namespace ct2triton
