// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace ct2triton {

void LogInfo(const std::string& text) noexcept;
void LogWarning(const std::string& text) noexcept;
void LogError(const char* text) noexcept;

bool VerboseLogEnabled() noexcept;
void LogVerbose(const std::string& text) noexcept;

// Builds the text only if it is logged. For lines that are written per request.
template <typename MakeText>
void LogVerboseLazily(MakeText&& make_text) {
  if (VerboseLogEnabled()) LogVerbose(std::forward<MakeText>(make_text)());
}

}  // namespace ct2triton
