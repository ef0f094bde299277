// SPDX-License-Identifier: Apache-2.0
//
// The one function of libct2triton_calls.so.
#include <cstdio>
#include <exception>
#include <string>

#include "engine/calls/library/ct2_library.h"

using ct2triton::CallLibrary;

extern "C" const CallLibrary* ct2triton_open_calls(const char* build, char* complaint,
                                                   size_t room) noexcept {
  try {
    if (std::string(build) == CT2TRITON_BUILD) return &ct2triton::LinkedLibrary();
    std::snprintf(complaint, room,
                  "the backend is of %s, but this library of calls is of %s; "
                  "install both from one build",
                  build, CT2TRITON_BUILD);
  } catch (const std::exception& error) {
    std::snprintf(complaint, room, "%s", error.what());
  }
  return nullptr;
}
