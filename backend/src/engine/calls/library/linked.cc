// SPDX-License-Identifier: Apache-2.0
//
// For programs that are linked with CTranslate2: no second library is opened.
#include <atomic>
#include <exception>

#include "engine/calls/library/ct2_library.h"

namespace ct2triton {
namespace {

std::atomic<const CallLibrary*> checked{nullptr};

}  // namespace

const CallLibrary& CallLibrary::Get() {
  if (checked == nullptr) checked = &LinkedLibrary();
  return *checked;
}

const CallLibrary* CallLibrary::Opened() noexcept {
  try {
    return &Get();
  } catch (const std::exception&) {  // its first user gets the error
    return nullptr;
  }
}

}  // namespace ct2triton
