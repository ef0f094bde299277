// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace ct2triton {

// Whose fault a failure is, and so what the caller can do. The Triton side maps each to one
// TRITONSERVER code.
enum class ErrorCode {
  kInternal,         // a bug of ours or a failure of the engine
  kNotFound,         // missing model files
  kInvalidArgument,  // what a user can mend in a request or a config
  kUnavailable,      // cannot be done now: unreadable files, shutdown
  kUnsupported,      // what this build, library or backend cannot do
  kCancelled,        // the client has gone
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

// For when memory ran out: made before, so that reporting it needs none.
const Error& OutOfMemory() noexcept;

// The Error that stands for any exception: itself, or kInternal with the exception's text.
// Call it inside a catch block only.
Error CurrentError() noexcept;

}  // namespace ct2triton
