// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <exception>
#include <new>

namespace ct2triton {

namespace {

const Error out_of_memory(ErrorCode::kInternal, "the server ran out of memory");

Error Internal(const char* what) noexcept {
  try {
    return Error(ErrorCode::kInternal, what);
  } catch (const std::bad_alloc&) {  // none for the text either
    return out_of_memory;
  }
}

}  // namespace

void ThrowInvalid(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

const Error& OutOfMemory() noexcept { return out_of_memory; }

Error CurrentError() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::exception& error) {
    return Internal(error.what());
  } catch (...) {
    return Internal("an exception of unknown type");
  }
}

}  // namespace ct2triton
