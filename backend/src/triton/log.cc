// SPDX-License-Identifier: Apache-2.0
#include "triton/log.h"

#include "triton_c_api.h"

namespace ct2triton {
namespace {

void Log(TRITONSERVER_LogLevel level, const char* text) noexcept {
  try {
    // The name replaces the source file in Triton's own lines.
    TRITONSERVER_Error* error = TRITONSERVER_LogMessage(level, "ctranslate2", 0, text);
    if (error != nullptr) TRITONSERVER_ErrorDelete(error);
  } catch (...) {  // memory is exhausted, so this cannot be reported either
  }
}

}  // namespace

void LogInfo(const std::string& text) noexcept { Log(TRITONSERVER_LOG_INFO, text.c_str()); }
void LogWarning(const std::string& text) noexcept { Log(TRITONSERVER_LOG_WARN, text.c_str()); }
void LogError(const char* text) noexcept { Log(TRITONSERVER_LOG_ERROR, text); }

bool VerboseLogEnabled() noexcept { return TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_VERBOSE); }
void LogVerbose(const std::string& text) noexcept { Log(TRITONSERVER_LOG_VERBOSE, text.c_str()); }

}  // namespace ct2triton
