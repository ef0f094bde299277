// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace ct2triton {

// The cause of a failure, which decides what the caller can do. The Triton layer maps each to one
// TRITONSERVER code.
enum class ErrorCode {
  kInternal,         // a bug in this backend or a failure of the engine
  kNotFound,         // missing model files
  kInvalidArgument,  // a mistake that a user can fix in a request or a config
  kUnavailable,      // cannot be done now: unreadable files, shutdown
  kUnsupported,      // a feature that this build, library or backend lacks
  kNoKernels,        // kUnsupported by the GPU, its driver or the installation, not by the model
  kCancelled,        // the client cancelled, its time limit passed, or a newer request replaced it
};

// The one exception of this code base. The text says what, where, the value given and what is
// allowed.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

// Throws Error(kInvalidArgument).
[[noreturn]] void ThrowInvalid(const std::string& what);

// The error for exhausted memory. It is created in advance, so reporting it allocates nothing.
const Error& OutOfMemory() noexcept;

// The current exception as an Error: the Error itself, or kInternal with the exception's text.
// Call it inside a catch block only.
Error CurrentError() noexcept;

}  // namespace ct2triton
