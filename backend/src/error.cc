// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <exception>

namespace ct2triton {

Error CurrentError() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(ErrorCode::kInternal, error.what());
  } catch (...) {
    return Error(ErrorCode::kInternal, "an exception of unknown type");
  }
}

}  // namespace ct2triton
