// SPDX-License-Identifier: Apache-2.0
//
// The one function of libct2triton_calls.so.
#include <cstdio>
#include <exception>
#include <string>

#include "engine/calls/library/ct2_library.h"

using ct2triton::CallLibrary;

extern "C" const CallLibrary* ct2triton_open_calls(const char* version, char* complaint,
                                                   size_t room) noexcept {
  try {
    if (std::string(version) == CT2TRITON_VERSION) return &ct2triton::LinkedLibrary();
    std::snprintf(complaint, room,
                  "the backend is version %s, and its libct2triton_calls.so is version %s; "
                  "install both from one ct2-triton",
                  version, CT2TRITON_VERSION);
  } catch (const std::exception& error) {
    std::snprintf(complaint, room, "%s", error.what());
  }
  return nullptr;
}
