// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <exception>
#include <new>

namespace ct2triton {

namespace {

const Error out_of_memory(ErrorCode::kInternal, "the server ran out of memory");

}  // namespace

const Error& OutOfMemory() noexcept { return out_of_memory; }

Error CurrentError() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::exception& error) {
    return Error(ErrorCode::kInternal, error.what());
  } catch (...) {
    return Error(ErrorCode::kInternal, "an exception of unknown type");
  }
}

}  // namespace ct2triton
